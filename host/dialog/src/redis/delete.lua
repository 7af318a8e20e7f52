-- Forgets a session, and that it ever was. KEYS: session, ids, due, last version. ARGV: id. Returns 1 when there was one.
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return redis.call('DEL', KEYS[1])
