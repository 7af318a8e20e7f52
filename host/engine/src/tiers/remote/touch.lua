-- KEYS: stored blocks. ARGV: the bytes of a whole one; then, for each key, for how long it is wanted from now on, in milliseconds.
-- Says of each whether it is there whole: 1 or 0. One that is lives for so long, or longer.
local there = {}
for at, key in ipairs(KEYS) do
  -- Of a key of another type this is an error, which is no number.
  local whole = redis.pcall('STRLEN', key) == tonumber(ARGV[1])
  local wanted = ARGV[at + 1]
  if whole and redis.call('PTTL', key) < tonumber(wanted) then
    redis.call('PEXPIRE', key, wanted)
  end
  there[at] = whole and 1 or 0
end
return there
