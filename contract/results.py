"""What a job's result is, derived from its attempts. Worker, dispatcher and analysis say it in the same words.

Attempts are in the order of their claims, and within one claim of their start: claim numbers grow whatever the clocks
of the hosts say. Each function gives the SQL of a lateral subquery; `job` names the column that holds the job's id.
"""

LOSSES_ALONE = 2
"""From so many losses on, a job is suspected to kill its worker: it travels alone and is asked alone in its process."""


CHILD_ROUNDS = "CASE WHEN job.parent IS NULL THEN 1 ELSE job.round END"
"""From which round on attempts count: a child's earlier rounds were shown another text of its parent."""


def first_attempt(job: str) -> str:
    """The earliest attempt with a completion or a block; a transport fault never counts."""
    return f"""
        SELECT id, outcome, answer, text FROM attempt WHERE attempt.job = {job} AND outcome <> 'no_completion'
        ORDER BY attempt.claim, started_at LIMIT 1
    """  # noqa: S608


def counted_attempt(job: str, *, since: str = "1", also: str | None = None) -> str:
    """The earliest attempt that was read, else the last completion; none where no completion was to be had.

    Attempts count from the round `since` on: CHILD_ROUNDS where the job may be a child and its row is in scope. `also`
    selects one more attempt (id, outcome, answer, text, claim, started_at) that is just being inserted.
    """
    found = f"""
        SELECT id, outcome, answer, text, claim, started_at FROM attempt
        WHERE attempt.job = {job} AND attempt.round >= {since}
    """  # noqa: S608
    among = f"{found} UNION ALL {also}" if also else found
    return f"""
        SELECT id, outcome, answer, text FROM ({among}) AS attempt WHERE outcome <> 'no_completion'
        ORDER BY outcome = 'answered' DESC, CASE WHEN outcome = 'answered' THEN attempt.claim END,
                 CASE WHEN outcome = 'answered' THEN started_at END, attempt.claim DESC, started_at DESC LIMIT 1
    """  # noqa: S608 - only column names of our own statements come here


def children_follow(ended: str) -> str:
    """The UPDATE by which children follow their parents; `ended` names a relation (id, state) of jobs just finished.

    An answered parent makes its children due; one that ended before is asked again in a new round. Any other end of
    the parent ends them as failed.
    """
    return f"""
        UPDATE job SET losses = 0, lease_until = NULL, calling = false, not_before = NULL, answer = NULL, text = NULL,
            counted_attempt = NULL,
            round = job.round + (ended.state = 'answered' AND job.finished_at IS NOT NULL)::int,
            state = CASE WHEN ended.state = 'answered' THEN 'pending' ELSE 'failed' END,
            finished_at = CASE WHEN ended.state = 'answered' THEN NULL ELSE now() END
        FROM {ended} AS ended WHERE job.parent = ended.id AND CASE
            WHEN ended.state = 'answered' THEN job.not_before = 'infinity' OR job.finished_at IS NOT NULL
            ELSE job.state = 'pending' END
    """  # noqa: S608 - only names of our own statements come here
