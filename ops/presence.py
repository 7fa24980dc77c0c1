"""Whether somebody dispatches, and what keeps them from it, as the dispatchers themselves have told."""

from sqlalchemy import Connection, text

from producer.window import WORKER_SEEN_S

_DISPATCHERS = text("""
    SELECT leads, fault, extract(epoch FROM now() - seen_at)::float AS age_s FROM dispatcher_heartbeat
    ORDER BY seen_at DESC
""")


def why_nobody_dispatches(connection: Connection) -> str | None:
    """Why no job is being queued at all; None if a dispatcher leads, or if one is just about to."""
    seen = connection.execute(_DISPATCHERS).all()
    fresh = [each for each in seen if each.age_s <= WORKER_SEEN_S]
    if any(each.leads and each.fault is None for each in fresh):
        return None
    if fresh:
        return next((each.fault for each in fresh if each.fault is not None), None)
    if seen:
        return f"no dispatcher is at work; the last one was heard of {seen[0].age_s:.0f} s ago"
    return "no dispatcher is at work"
