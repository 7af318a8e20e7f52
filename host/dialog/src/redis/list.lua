-- Sessions of a tenant in the order of their ids.
-- KEYS: ids. ARGV: '-' or '(' and the id after which to begin, how many at most, what the keys of sessions begin with.
-- Returns id, turns, created and updated of each, one after the other. Ids without a session are those that expired.
local from, most, found = ARGV[1], tonumber(ARGV[2]), {}
while #found < 4 * most do
    local ids = redis.call('ZRANGEBYLEX', KEYS[1], from, '+', 'LIMIT', 0, 256)
    for _, id in ipairs(ids) do
        local line = redis.call('HMGET', ARGV[3] .. id, 'turns', 'created', 'updated')
        if line[1] and #found < 4 * most then
            for _, value in ipairs({id, line[1], line[2], line[3]}) do
                found[#found + 1] = value
            end
        end
    end
    if #ids < 256 then
        break
    end
    from = '(' .. ids[#ids]
end
return found
