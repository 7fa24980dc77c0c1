-- The gate of one pool: everything that may hold a call back is looked at, and written, in one step, by this clock.
--
-- KEYS[1]  hash: how the pool stands
-- KEYS[2]  sorted set: permit -> when its place is free again
-- KEYS[3]  sorted set: "TOKENS:PERMIT" -> when it was granted
-- ARGV[1]  what is asked: permit, count, settled, throttled, exhausted or released
-- ARGV[2]  JSON: the numbers for it (worker/pools.py). All times are milliseconds, here and in the keys.
--
-- permit answers {"granted", NOW}, {"denied", WAIT, REASON} or {"unknown", 1 or 2}: nobody has counted that day's calls
-- yet. The others answer {"done"} or, where somebody was first, {"stale"}.

local POOL, HELD, LOG = KEYS[1], KEYS[2], KEYS[3]
local KEEP_MS = 3 * 24 * 3600 * 1000
local LATE_MS = 10 * 60 * 1000 -- so long after its lease a call may still be settled
local LONGEST_DAY_MS = 26 * 3600 * 1000
local TRUSTED_MS = 120 * 1000 -- a younger day may not have begun yet by the provider's clock
local POLL_MS = 200 -- a place may become free at any moment, and nobody would tell
local LOWER, LOWEST, RAISE = 0.7, 0.05, 0.02

local ask = cjson.decode(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000

-- Lua itself would print 14 digits, and a time in milliseconds has 13 before the point.
local function exactly(number)
    return string.format('%.3f', number)
end

local function read(field)
    return tonumber(redis.call('HGET', POOL, field))
end

local function write(...)
    redis.call('HSET', POOL, ...)
    redis.call('PEXPIRE', POOL, KEEP_MS)
end

local function pause(till, reason)
    if till > (read('paused_until') or 0) then
        write('paused_until', exactly(till), 'reason', reason)
    end
end

local function denied(wait, reason)
    return {'denied', math.max(1, math.ceil(wait)), reason}
end

-- The pool's factor, and since when it has grown no more: a step for each whole window without a throttled call.
local function recovered()
    local factor, since = read('factor') or 1, read('factor_since') or now
    local windows = math.max(0, math.floor((now - since) / ask.window_ms))
    return math.min(1, factor + RAISE * windows), since + windows * ask.window_ms
end

local function tokens_of(entry)
    return tonumber(string.match(entry, '^%d+'))
end

local function sum_of(entries)
    local sum = 0
    for _, entry in ipairs(entries) do sum = sum + tokens_of(entry) end
    return sum
end

-- The tokens granted in the window that ends now. Entries that left it go when the next one comes.
local function logged()
    if redis.call('EXISTS', LOG) == 0 then return 0 end
    local all = read('logged') or sum_of(redis.call('ZRANGE', LOG, 0, -1))
    return all - sum_of(redis.call('ZRANGEBYSCORE', LOG, '-inf', exactly(now - ask.log_ms)))
end

-- How long until `tokens` of those in the window have left it.
local function wait_for(tokens)
    local entries = redis.call('ZRANGEBYSCORE', LOG, '(' .. exactly(now - ask.log_ms), '+inf', 'WITHSCORES')
    local left, wait = 0, 0
    for place = 1, #entries, 2 do
        if left < tokens then
            left = left + tokens_of(entries[place])
            wait = tonumber(entries[place + 1]) + ask.log_ms - now
        end
    end
    return wait
end

-- The longest wait that any limit asks for, with its name; 0 if the call may go.
local function longest_wait(total)
    local wait, reason = 0, nil
    local function must_wait(milliseconds, name)
        if milliseconds > wait then wait, reason = milliseconds, name end
    end
    if ask.request_ms then
        must_wait((read('requests_tat') or 0) - now - ask.burst_ms, 'rpm')
    end
    if ask.token_ms then
        must_wait((read('tokens_tat') or 0) - now - ask.burst_ms, 'tpm')
        if total > 0 and ask.tokens > ask.tokens_alone then
            must_wait(wait_for(total), 'tpm')
        elseif total > 0 and total + ask.tokens > ask.tokens_most then
            must_wait(wait_for(total + ask.tokens - ask.tokens_most), 'tpm')
        end
    end
    if ask.concurrency and redis.call('ZCOUNT', HELD, '(' .. exactly(now), '+inf') >= ask.concurrency then
        local first = redis.call('ZRANGEBYSCORE', HELD, '(' .. exactly(now), '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
        must_wait(math.min(POLL_MS, first[2] - now), 'concurrency')
    end
    return wait, reason
end

-- The end of the day whose calls are counted, while it lasts, whatever the asking clock says.
local function counted_day()
    local day_end = read('day_end')
    if day_end and now < day_end and day_end - now <= LONGEST_DAY_MS then
        return day_end
    end
end

local function grant(factor, factor_since, total)
    if ask.request_ms then
        local debt_until = math.max(read('requests_tat') or 0, now)
        write('requests_tat', exactly(debt_until + ask.request_ms / factor))
    end
    if ask.token_ms then
        local debt_until = math.max(read('tokens_tat') or 0, now)
        redis.call('ZREMRANGEBYSCORE', LOG, '-inf', exactly(now - ask.log_ms))
        redis.call('ZADD', LOG, exactly(now), ask.tokens .. ':' .. ask.id)
        redis.call('PEXPIRE', LOG, KEEP_MS)
        write('tokens_tat', exactly(debt_until + ask.tokens * ask.token_ms / factor), 'logged', total + ask.tokens)
    end
    if counted_day() then
        redis.call('HINCRBY', POOL, 'used', 1)
    end
    write('factor', exactly(factor), 'factor_since', exactly(factor_since))
    redis.call('ZREMRANGEBYSCORE', HELD, '-inf', exactly(now - LATE_MS))
    redis.call('ZADD', HELD, exactly(now + ask.lease_ms), ask.id)
    redis.call('PEXPIRE', HELD, KEEP_MS)
    return {'granted', exactly(now)}
end

-- The number of the asked day that it is now by this clock: it begins at days[number] and ends at days[number + 1].
local function day_number()
    if now >= ask.days[3] or ask.days[2] - now > LONGEST_DAY_MS then
        return nil
    end
    return now < ask.days[2] and 1 or 2
end

local verbs = {}

function verbs.permit()
    if redis.call('ZSCORE', HELD, ask.id) then
        return {'granted', exactly(now)} -- asked again because the answer was lost on its way
    end
    local paused_until = read('paused_until') or 0
    if paused_until > now then
        return denied(paused_until - now, redis.call('HGET', POOL, 'reason'))
    end
    if ask.requests_a_day then
        local number, day_end = day_number(), counted_day()
        if not number then
            return denied(1000, 'the clocks of broker and worker differ')
        elseif not day_end then
            return {'unknown', number}
        elseif (read('used') or 0) >= ask.requests_a_day then
            pause(day_end, ask.spent)
            return denied(day_end - now, ask.spent)
        end
    end
    local factor, factor_since = recovered()
    local total = ask.token_ms and logged() or 0
    local wait, reason = longest_wait(total)
    if wait > 0 then
        return denied(wait, reason)
    end
    return grant(factor, factor_since, total)
end

-- How many calls the day has seen, told by whoever asked first for it.
function verbs.count()
    if counted_day() then
        return {'stale'}
    end
    write('day_end', exactly(ask.day_end), 'used', ask.used)
    if ask.exhausted then
        pause(ask.day_end, ask.reason)
    end
    return {'done'}
end

local function correct_tokens(difference)
    local debt_until = math.max(now, read('tokens_tat') or 0) + difference * ask.token_ms / recovered()
    write('tokens_tat', exactly(math.max(now, debt_until)))
    local entry = ask.tokens .. ':' .. ask.id
    local granted = redis.call('ZSCORE', LOG, entry)
    if granted then
        redis.call('ZREM', LOG, entry)
        redis.call('ZADD', LOG, granted, ask.tokens + difference .. ':' .. ask.id)
        write('logged', (read('logged') or sum_of(redis.call('ZRANGE', LOG, 0, -1))) + difference)
    end
end

function verbs.settled()
    if ask.granted_ms > (read('struck_at') or 0) then
        redis.call('HDEL', POOL, 'strikes')
    end
    if ask.token_ms and ask.difference ~= 0 then
        correct_tokens(ask.difference)
    end
end

-- Calls that were in flight together fail together: only one granted after the last strike is another one.
function verbs.throttled()
    local strikes = read('strikes') or 0
    if ask.granted_ms > (read('struck_at') or 0) then
        strikes = strikes + 1
        write('strikes', strikes, 'struck_at', exactly(now))
    end
    local doubled = math.min(ask.longest_ms, ask.first_ms * 2 ^ math.max(0, strikes - 1))
    local till = now + (ask.wait_ms or doubled) * ask.jitter
    pause(till, ask.reason)
    local factor = recovered()
    if now - (read('lowered_at') or 0) >= ask.window_ms then
        factor = math.max(LOWEST, factor * LOWER)
        write('lowered_at', exactly(now))
    end
    write('factor', exactly(factor), 'factor_since', exactly(math.max(till, read('factor_since') or 0)))
end

function verbs.exhausted()
    local number = day_number()
    local young = not number or now - ask.days[number] < TRUSTED_MS
    pause(young and now + ask.young_ms or ask.days[number + 1], ask.reason)
end

function verbs.released()
end

local verb = ARGV[1]
if verb == 'permit' or verb == 'count' then
    return verbs[verb]()
end
if redis.call('ZREM', HELD, ask.id) == 0 then
    return {'stale'}
end
verbs[verb]()
return {'done'}
