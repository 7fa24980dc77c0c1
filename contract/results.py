"""What a job's result is, derived from its attempts. Worker, dispatcher and analysis say it in the same words.

Attempts are in the order of their claims, and within one claim of their start: claim numbers grow whatever the clocks
of the hosts say.
"""

FIRST_ATTEMPT = """
    SELECT id, outcome, answer FROM attempt WHERE attempt.job = job.id AND outcome <> 'no_completion'
    ORDER BY attempt.claim, started_at LIMIT 1
"""
"""The earliest attempt with a completion or a block; a transport fault never counts."""

COUNTED_ATTEMPT = """
    SELECT id, outcome, answer FROM attempt WHERE attempt.job = job.id AND outcome <> 'no_completion'
    ORDER BY outcome = 'answered' DESC, CASE WHEN outcome = 'answered' THEN attempt.claim END,
             CASE WHEN outcome = 'answered' THEN started_at END, attempt.claim DESC, started_at DESC LIMIT 1
"""
"""The earliest attempt that was read, else the last completion; none where no completion was to be had."""
