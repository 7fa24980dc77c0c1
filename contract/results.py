"""What a job's result is, derived from its attempts. Worker, dispatcher and analysis say it in the same words.

Attempts are in the order of their claims, and within one claim of their start: claim numbers grow whatever the clocks
of the hosts say. Each function gives the SQL of a lateral subquery; `job` names the column that holds the job's id.
"""


def first_attempt(job: str) -> str:
    """The earliest attempt with a completion or a block; a transport fault never counts."""
    return f"{_had(job)} ORDER BY attempt.claim, started_at LIMIT 1"


def counted_attempt(job: str) -> str:
    """The earliest attempt that was read, else the last completion; none where no completion was to be had."""
    return f"""{_had(job)}
        ORDER BY outcome = 'answered' DESC, CASE WHEN outcome = 'answered' THEN attempt.claim END,
                 CASE WHEN outcome = 'answered' THEN started_at END, attempt.claim DESC, started_at DESC LIMIT 1
    """


def _had(job: str) -> str:
    # Only column names of our own statements come here.
    return f"SELECT id, outcome, answer FROM attempt WHERE attempt.job = {job} AND outcome <> 'no_completion'"  # noqa: S608
