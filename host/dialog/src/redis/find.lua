-- Counts as a use of a session and says what is there.
-- KEYS: session, ids, due, last version. ARGV: time to live in ms, id, 1 when the body is wanted.
-- Returns 0 (nothing is known), 1 (it expired) or 2 (it is there), then version and body.
local time = redis.call('TIME')
local now, ttl = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[1])
local version = redis.call('HGET', KEYS[1], 'version')
if not version then
    local due = redis.call('ZSCORE', KEYS[3], ARGV[2])
    -- Pushed out before it was due is not expired. A second of grace, since keys go by another reading of the clock.
    if due and tonumber(due) <= now + 1000 and tonumber(due) + ttl > now then
        return {1, '', ''}
    end
    return {0, '', ''}
end
redis.call('PEXPIREAT', KEYS[1], now + ttl)
redis.call('ZADD', KEYS[3], now + ttl, ARGV[2])
for i = 2, 4 do
    redis.call('PEXPIRE', KEYS[i], 2 * ttl + 60000)
end
local body = ''
if ARGV[3] == '1' then
    body = redis.call('HGET', KEYS[1], 'body') or ''
end
return {2, version, body}
