"""A call before it is made: the prompt as it will be sent, the seed, and whether the answer is limited. Pure."""

from dataclasses import dataclass

from contract.formats import asking
from contract.forms import Annotation, ClosedFormat, Form, LikertFormat
from contract.reminders import reminder
from worker.providers.base import Expected
from worker.records import ClaimedJob
from worker.retry import Tally


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A call as far as it is known before it is made; `error` says why it cannot be made at all.

    `constrained`: the server may let the model say nothing but a letter.
    """

    seed: int
    prompt: str | None = None
    error: str | None = None
    constrained: bool = False


def expected(form: Form) -> Expected:
    """What kind of answer a call in this form is to bring."""
    match form:
        case ClosedFormat():
            return "letter"
        case LikertFormat():
            return "rating"
        case Annotation():
            return "choice_text"
        case _:
            return "text"


def prepare(job: ClaimedJob, tally: Tally) -> Prepared:
    """Render the prompt of the next call of `job`; nothing is raised."""
    seed, retry, form = job.seed(tally.invalid), job.rules.retry, job.rules.format
    again = tally.invalid > 0
    try:
        prompt = asking.render(form, job.item, job.variant, job.rules.prompt, earlier=job.earlier, part=job.part)
        if again and retry.strategy == "remind":
            letters = len(job.item.choices) if isinstance(form, ClosedFormat) else 0
            prompt = f"{prompt}\n\n{reminder(retry, job.item.language, letters)}"
        constrained = form.constrain or (again and retry.strategy == "constrain")
        return Prepared(seed=seed, prompt=prompt, constrained=constrained)
    except Exception as error:  # noqa: BLE001 - a fault of ours must end this job, not its bundle
        return Prepared(seed=seed, error=f"rendering failed: {error!r}")
