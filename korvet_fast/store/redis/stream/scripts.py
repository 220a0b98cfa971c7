"""The Lua scripts that run inside Redis, each in one step. KEYS are always the stream and the state beside it.

The state is a hash:
  form     how the log is laid out, `entries:10` (layout and bits) or `batches:0` (ids are `<base offset>-1`); formerly
           `batches:10` (ids as in `entries`)
  epoch    of the program that took the log over last
  fence    that program's fencing token; every append must carry it
  end      the offset after the last append; also moved up by `acquire`
  jump top `acquire` moved `end` up to `jump`, and `top` was the end of what was really there
  start    records below it are gone, even where their batch is still there
  removed  records below it were there once
  gone     how many entries have been taken out of the stream, as far as that is known
  size count time    bytes and entries ever appended, and the largest record time, in ms
  cut      bytes ever taken away
  foreign  entries in the stream without those of `count`, when somebody was last found to have deleted the stream
  p<id>    headers of the last five batches of an idempotent producer (layout `entries`)
  epochs   who wrote what (layout `entries`): `epoch:offset` of all who took the log over, and where they began
  held     inside of a transaction only: its appends are refused
  held-seq beside it, where `held` is only the first number of an id

An append is MULTI, a guard, XADDs, CLOSE, EXEC. The payload stays out of Lua, which would copy it twice. A guard that
finds another token locks the stream by moving its last id up to the highest there is, so that the XADDs which follow
are refused by Redis; CLOSE takes the lock away. So does a guard that finds a right missing which itself or CLOSE needs.
All of that is one step for everybody else, and stays within two keys, as in a Cluster a third one that does not exist
would have to wait while its slot moves. EVAL, not EVALSHA: a script that is not there must not let the XADDs behind it
through.
"""

_HIGHEST = "18446744073709551615-18446744073709551615"
_BELOW_HIGHEST = "18446744073709551615-18446744073709551614"

# `h`: why, with the error to answer if there is one. Does nothing where it could not be undone.
_LOCK = f"""
local may, sets = redis.acl_check_cmd, redis.acl_check_cmd('HSET', KEYS[2], 'a', 'b')
if not (may('EXISTS', KEYS[1]) and may('XINFO', 'STREAM', KEYS[1]) and may('XSETID', KEYS[1], '1-1')
  and may('DEL', KEYS[1]) and may('HDEL', KEYS[2], 'a') and (sets or may('HINCRBY', KEYS[2], 'a', '1'))) then
  return redis.error_reply('NOPERM a right that appends need is missing, and one that refuses them')
end
local top = ''
local there = redis.call('EXISTS', KEYS[1]) == 1
if there then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do if info[i] == 'last-generated-id' then top = info[i + 1] end end
end
if sets then
  redis.call('HSET', KEYS[2], 'held', top)
else
  local ms, seq = string.match(top, '(%d+)-(%d+)')
  redis.call('HINCRBY', KEYS[2], 'held', ms or '-1')
  if ms then redis.call('HINCRBY', KEYS[2], 'held-seq', seq) end
end
if there then
  redis.call('XSETID', KEYS[1], '{_HIGHEST}')
else
  redis.pcall('XADD', KEYS[1], '{_HIGHEST}', 'held', '')  -- if that is denied, so is what follows
end
return h.err and redis.error_reply(h.err) or 0
"""

_COMPARE = """
local h = redis.pcall('HMGET', KEYS[2], 'fence', 'end')
if not h.err and not redis.acl_check_cmd('HSET', KEYS[2], 'a', 'b') then
  h = {err = 'NOPERM a right that appends need is missing'}
end
"""

# Arguments: fence, end.
GUARD = f"""{_COMPARE}
if h[1] == ARGV[1] and h[2] == ARGV[2] then return 1 end
{_LOCK}"""

# Arguments: fence, end, then the first record's id and fields: a foreign id above it is found before anything is done.
GUARD_AND_ADD = f"""{_COMPARE}
if h[1] == ARGV[1] and h[2] == ARGV[2] then
  h = redis.pcall('XADD', KEYS[1], unpack(ARGV, 3))
  if type(h) == 'string' then return 1 end
  if redis.acl_check_cmd('XADD', KEYS[1], unpack(ARGV, 3)) then h = {{}} end  -- the id is why: nothing to report
end
{_LOCK}"""

# Arguments: fence and end, as the guard's; then names and values to set in the state. Compares them again: a guard that
# failed, because it may not lock, has let the XADDs through, and they must not be told to be stored.
CLOSE = """
local h = redis.pcall('HMGET', KEYS[2], 'held', 'held-seq', 'fence', 'end')
if h.err then h = {redis.call('HGET', KEYS[2], 'held'), redis.call('HGET', KEYS[2], 'held-seq')} end
local held = h[1]
if not held then
  if h[3] ~= ARGV[1] or h[4] ~= ARGV[2] then return 0 end
  redis.call('HSET', KEYS[2], unpack(ARGV, 3))
  return 1
end
if h[2] then held = held .. '-' .. h[2] end
if held == '' or held == '-1' then redis.call('DEL', KEYS[1]) else redis.call('XSETID', KEYS[1], held) end
redis.call('HDEL', KEYS[2], 'held', 'held-seq')
return 0
"""

_FIELDS = (
    "'form', 'epoch', 'fence', 'end', 'jump', 'top', 'start', 'removed', 'gone', 'size', 'count', 'time', 'cut', "
    "'epochs', 'foreign'"
)

# The state read: the fields above, then those of XINFO STREAM. No payload, but the headers of the first and last batch.
_READ_STATE = f"""
local out = redis.call('HMGET', KEYS[2], {_FIELDS})
local n = #out
local function add(value) n = n + 1; out[n] = value end
local function header(entry)
  if entry and entry[2][1] == 'batch' then return string.sub(entry[2][2], 1, 61) end
  return ''
end
if redis.call('EXISTS', KEYS[1]) == 0 then return out end
local info = redis.call('XINFO', 'STREAM', KEYS[1])
local has = {{}}
for i = 1, #info, 2 do has[info[i]] = info[i + 1] end
local first, last = has['first-entry'], has['last-entry']
add(has['last-generated-id'])
add(has['entries-added'])
add(has['length'])
add(first and first[1] or '')
add(header(last))
add(redis.call('MEMORY', 'USAGE', KEYS[1]) or 0)
return out
"""

READ_STATE = _READ_STATE

# Redis carries these out at maxmemory too. They write a few bytes, and without them no broker could start there, read
# what is stored, and trim.
_WITHOUT_ROOM = "#!lua flags=allow-oom"

# Take the log over. Arguments: form, fence, epoch at least. Carried out again, it does nothing more.
ACQUIRE = f"""{_WITHOUT_ROOM}
local h = redis.call('HMGET', KEYS[2], 'form', 'epoch', 'fence')
if h[1] and h[1] ~= ARGV[1] then return h[1] end
if h[3] ~= ARGV[2] then
  local epoch = math.max(tonumber(h[2] or '-1') + 1, tonumber(ARGV[3]))
  redis.call('HSET', KEYS[2], 'form', ARGV[1], 'fence', ARGV[2], 'epoch', string.format('%.0f', epoch))
end
{_READ_STATE}"""

# Set fields of the state, if the log is still ours. Arguments: fence, then names and values.
SET = f"""{_WITHOUT_ROOM}
if redis.call('HGET', KEYS[2], 'fence') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], unpack(ARGV, 2))
return 1
"""

# Remove fields of the state, if the log is still ours and ends where it did. Arguments: fence, end, then the fields.
FORGET = """
local h = redis.call('HMGET', KEYS[2], 'fence', 'end')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[2], unpack(ARGV, 3))
return 1
"""

# Keep lost appends, sent before a break, from coming back. Arguments: fence; how many producers, and their fields; ids.
#
# A Redis that dies while it writes its append-only file leaves the beginning of a transaction there. As it starts it
# does not carry that out, and leaves it in the file (`aof-load-truncated`); the next start carries it out with whatever
# transaction comes behind it. This script stands behind it, so that start will delete those entries again, and set the
# fields right that the transaction may have set. Here and now it changes nothing: an entry is added, so that there is
# one to delete and the command is kept; it goes with the others.
UNDO_LOST = f"""{_WITHOUT_ROOM}
if redis.call('HGET', KEYS[2], 'fence') ~= ARGV[1] then return 0 end
local absent, at = {{}}, 3 + ARGV[2]
for i = at, #ARGV do
  if #redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i]) == 0 then absent[#absent + 1] = ARGV[i] end
end
if #absent == 0 then return 1 end
local has = {{}}
local there = redis.call('EXISTS', KEYS[1]) == 1
if there then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do has[info[i]] = info[i + 1] end
end
redis.call('XADD', KEYS[1], '{_BELOW_HIGHEST}', 'held', '')
redis.call('XDEL', KEYS[1], '{_BELOW_HIGHEST}', unpack(absent))
if there then
  local deleted = has['max-deleted-entry-id']
  if deleted == '0-0' then deleted = '0-1' end  -- Redis takes 0-0 for none given
  redis.call('XSETID', KEYS[1], '{_BELOW_HIGHEST}', 'ENTRIESADDED', has['entries-added'], 'MAXDELETEDID', deleted)
  redis.call('XSETID', KEYS[1], has['last-generated-id'])
else
  redis.call('DEL', KEYS[1])
end
local function renew(field)
  local value = redis.call('HGET', KEYS[2], field)
  redis.call('HSET', KEYS[2], field, value or '')
  if not value then redis.call('HDEL', KEYS[2], field) end
end
for _, field in ipairs({{'end', 'size', 'count', 'time', 'held', 'held-seq'}}) do renew(field) end
for i = 3, at - 1 do renew(ARGV[i]) end
return 1
"""

# Give a log that this program has had all the time another token: appends under the former token are refused.
# Arguments: the present token, the new one, then ids. Answers which of them exist. Carried out again, it does the same.
REPLACE_FENCE = f"""{_WITHOUT_ROOM}
local h = redis.call('HMGET', KEYS[2], 'fence', 'end')
if h[1] ~= ARGV[1] and h[1] ~= ARGV[2] then return {{0, h[2]}} end
redis.call('HSET', KEYS[2], 'fence', ARGV[2])
local top = '0-0'
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do if info[i] == 'last-generated-id' then top = info[i + 1] end end
end
local out = {{1, h[2], top}}
for i = 3, #ARGV do out[i + 1] = #redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i]) end
return out
"""

# Take entries away from the front. Arguments: fence ('' for a log that is not acquired), lowest id that stays, how many
# bytes that is, then names and values to set.
TRIM = f"""{_WITHOUT_ROOM}
if ARGV[1] ~= '' and redis.call('HGET', KEYS[2], 'fence') ~= ARGV[1] then return 0 end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('XTRIM', KEYS[1], 'MINID', '=', ARGV[2])
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  local has = {{}}
  for i = 1, #info, 2 do has[info[i]] = info[i + 1] end
  redis.call('HSET', KEYS[2], 'gone', string.format('%.0f', has['entries-added'] - has['length']))
end
redis.call('HINCRBY', KEYS[2], 'cut', ARGV[3])
redis.call('HSET', KEYS[2], unpack(ARGV, 4))
{_READ_STATE}"""
