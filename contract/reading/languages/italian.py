"""Italian."""

from contract.reading.languages.language import Language

ITALIAN = Language(
    code="it",
    articles="la|il|l'|lo",
    labels="opzione|messaggio|alternativa|scelta|lettera|affermazione|argomento|proposta",
    numbers=r"numero|n[.°]?|nr\.?",
    replies="risposta|risp\\.?",
    nouns="soluzione|risultato|conclusione|decisione|verdetto|esito|vincitore|vincitrice|preferenza",
    others="altra|altro|prima|primo|seconda|secondo|terza|terzo|quarta|ultima|ogni|ciascuna|prossima|scartata",
    is_="è|e'|sia|sembra|risulta|resta|rimane|era|dev'essere",
    are="sono|erano|sembrano|risultano",
    to_be="dovrebbe essere|deve essere|sarà|sembra essere|non può che essere|dovrà essere",
    would_be="sarebbe",
    right=(
        "corrett[oaie]|giust[oaie]|esatt[oaie]|ver[oaie]|miglior[ei]?|persuasiv[oaie]|convincent[ei]|plausibil[ei]|"
        "probabil[ei]|util[ei]|adatt[oaie]|appropriat[oaie]|preferibil[ei]|accurat[oaie]"
    ),
    wrong=(
        "sbagliat[oaie]|errat[oaie]|scorrett[oaie]|fals[oaie]|esclus[oaie]|da escludere|scartat[oaie]|da scartare|"
        "inesatt[oaie]|eliminat[oaie]"
    ),
    affirms="vince|ha più senso|convince di più|si adatta meglio",
    not_="non|mai|né|meno|peggio|improbabile|poco",
    denies="non (?:è|e'|può|sono|va|sembra|convince|c'entra|ha senso|regge)",
    doubts=(
        "non|mai|dubito|potrebbe|potrebbero|potrei|stavo per|tentat[oa] di|qualcuno|alcuni|nessuno|pochi|"
        "supponiamo|poniamo|ammettiamo|ipotizziamo|impossibile|perché non"
    ),
    that="che",
    assured=(
        "credo|penso|ritengo|direi|dico|credere|dire|chiaro|evidente|ovvio|cert[ao]|sicur[oa]|convint[oa]|vero|"
        "significa|mostra|indica|suggerisce|conferma|concludo|dubbio|dubbi|so|sembra|pare"
    ),
    concedes="anche se|sebbene|benché|nonostante|per quanto",
    chooses=(
        "scelgo|scegli|scegliere|sceglierei|seleziono|opto per|opterei per|direi|dico|rispondo|risponderei|voto|"
        "preferisco|penso|credo|ritengo|propendo per|propenderei per|punto su|vado con|vince|indico|confermo|intendevo"
    ),
    between=(
        "probabilmente|sicuramente|certamente|chiaramente|quindi|dunque|proprio|che sia|sia|la|il|l'|sempre|"
        "comunque|invece|ovviamente|senz'altro|per|che è|molto probabilmente"
    ),
    therefore=(
        "quindi|dunque|perciò|pertanto|ma|bensì|anzi|invece|sarebbe|però|semmai|piuttosto|tuttavia|comunque|probabilmente|"
        "sicuramente|certamente|chiaramente|ovviamente|senza dubbio|secondo me|per me|a mio (?:avviso|parere)|"
        "secondo il (?:testo|brano|contesto)"
    ),
    apart="tutto|niente|nulla|qualsiasi cosa|nessuno",
    asides="no|sì|si|certo|va bene|scusa|scusate|correzione|risposta finale",
    because="perch[ée]'?|poich[ée]'?|in quanto|siccome|dato che|visto che",
    after=(
        "e|ma|non|però|invece|quindi|dunque|tra|fra|in|nel|nella|rispetto|piuttosto|con|come|o|anche se|è|e'|"
        "che|ed|a causa|per|secondo|dat[oa]|vist[oa]"
    ),
    before="la|il|l'|che|e|ma|mentre|quindi|dunque|perché|poiché|risposta|però|invece|credo che|solo|soltanto",
    against="non|di|del|della|dal|dalla|né",
    both="entramb[ie]|tutt[ie] e due|ambedue",
    neither="nessun[oa]",
    of_them="delle|dei|degli|due|le|risposte|opzioni|scelte|messaggi|alternative|di|queste|questi|loro",
    joints="e|ed|o|od|oppure|che|sia|o anche|contro",
    maybe="forse|magari",
    nor="né",
    also="anche|pure|altrettanto|ugualmente",
    if_="se|qualora|purché|nel caso",
    forced="devo|dovessi|proprio|costrett[oa]|obbligat[oa]|dovendo|serve",
    yes="sì|si",
    no="no|non",
    refusals=(
        "non (?:posso|potrei|riesco|sono in grado|è possibile|so|lo so|saprei|ho (?:abbastanza|sufficienti|opinioni)|"
        "ci sono abbastanza|è chiaro|sono sicur[oa]|dispongo)|mi dispiace|mi scuso|impossibile|preferisco non|"
        "come (?:modello|intelligenza|ia)|informazioni insufficienti|nessuna preferenza|non mi esprimo"
    ),
    untold=(
        "non (?:è|viene|sono|vengono) (?:specificat|indicat|menzionat|not|dett|fornit|disponibil)\\w*|"
        "(?:il|nel|dal) (?:testo|contesto|brano)(?: fornito)? non|nessuna (?:risposta|informazione)"
    ),
    leading=(
        "il|lo|la|i|gli|le|l|un|uno|una|di|d|del|dello|della|dei|degli|delle|dell|a|ad|al|allo|alla|ai|agli|alle|all|"
        "da|dal|dallo|dalla|dai|dagli|dalle|dall|in|nel|nello|nella|nei|negli|nelle|nell|su|sul|sullo|sulla|sui|sugli|"
        "sulle|sull|con|per|tra|fra|circa"
    ),
    headings="domanda|contesto|istruzioni|utente",
)
