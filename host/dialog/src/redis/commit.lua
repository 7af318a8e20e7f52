-- Puts a session in the place of the state at an expected version.
-- KEYS: session, ids, due, last version.
-- ARGV: expected version, time to live in ms, body, id, turns, created, updated.
-- Returns 1 and the new version, or 0 and the one found.
local found = redis.call('HGET', KEYS[1], 'version') or '0'
if found ~= ARGV[1] then
    return {0, found}
end
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now, ttl = math.floor(now_us / 1000), tonumber(ARGV[2])
-- The server's clock, so that no version comes again even when all else is lost; and after the last, should the clock go back.
local last = tonumber(redis.call('GET', KEYS[4]) or '0')
local version = string.format('%.0f', math.max(now_us, last + 1))
redis.call('HSET', KEYS[1], 'version', version, 'body', ARGV[3], 'turns', ARGV[5], 'created', ARGV[6], 'updated', ARGV[7])
redis.call('PEXPIREAT', KEYS[1], now + ttl)
redis.call('ZADD', KEYS[2], 0, ARGV[4])
redis.call('ZADD', KEYS[3], now + ttl, ARGV[4])
redis.call('SET', KEYS[4], version)
-- Some of those of which nothing is to be told any more.
local old = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - ttl, 'LIMIT', 0, 32)
if #old > 0 then
    redis.call('ZREM', KEYS[2], unpack(old))
    redis.call('ZREM', KEYS[3], unpack(old))
end
for i = 2, 4 do
    redis.call('PEXPIRE', KEYS[i], 2 * ttl + 60000)
end
return {1, version}
