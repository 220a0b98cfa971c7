"""What runs inside Redis: Lua, each script one step. KEYS are always the stream and the state beside it.

The state is a hash:
  form     how the log is laid out, `entries:10` or `batches:10` (layout and bits)
  epoch    of the program that took the log over last
  fence    that program's mark; every append must carry it
  end      the offset after the last append; also moved up by `attach`
  jump top `attach` moved `end` up to `jump`, and `top` was the end of what was really there
  start    records below it are gone, even where their batch is still there
  removed  records below it were there once
  gone     how many entries have been taken out of the stream, as far as that is known
  size count time    bytes and entries ever appended, and the largest record time, in ms
  cut      bytes ever taken away
  p<id>    heads of the last five batches of an idempotent producer (layout `entries`)
  epochs   who wrote what (layout `entries`): `epoch:offset` of all who took the log over, and where they began
  held     inside of a transaction only: its appends are refused

An append is MULTI, a guard, XADDs, CLOSE, EXEC. The payload stays out of Lua, which would copy it twice. A guard that
finds another's mark locks the stream by moving its last id up to the highest there is, so that the XADDs which follow
are refused by Redis; CLOSE takes the lock away. All of that is one step for everybody else. EVAL, not EVALSHA: a
script that is not there must not let the XADDs behind it through.
"""

_HIGHEST = "18446744073709551615-18446744073709551615"

_LOCK = f"""
local top = ''
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do if info[i] == 'last-generated-id' then top = info[i + 1] end end
  redis.call('XSETID', KEYS[1], '{_HIGHEST}')
else
  redis.call('XADD', KEYS[1], '{_HIGHEST}', 'held', '')
end
redis.call('HSET', KEYS[2], 'held', top)
return 0
"""

# Arguments: fence, end.
GUARD = f"""
local h = redis.call('HMGET', KEYS[2], 'fence', 'end')
if h[1] == ARGV[1] and h[2] == ARGV[2] then return 1 end
{_LOCK}"""

# Arguments: fence, end, then the first record's id and fields: a foreign id above it is found before anything is done.
GUARD_AND_ADD = f"""
local h = redis.call('HMGET', KEYS[2], 'fence', 'end')
if h[1] == ARGV[1] and h[2] == ARGV[2]
  and type(redis.pcall('XADD', KEYS[1], unpack(ARGV, 3))) == 'string' then return 1 end
{_LOCK}"""

# Arguments: names and values to set in the state.
CLOSE = """
local held = redis.call('HGET', KEYS[2], 'held')
if not held then
  redis.call('HSET', KEYS[2], unpack(ARGV))
  return 1
end
if held == '' then redis.call('DEL', KEYS[1]) else redis.call('XSETID', KEYS[1], held) end
redis.call('HDEL', KEYS[2], 'held')
return 0
"""

_FIELDS = (
    "'form', 'epoch', 'fence', 'end', 'jump', 'top', 'start', 'removed', 'gone', 'size', 'count', 'time', 'cut', "
    "'epochs'"
)

# What is there: the fields above, then what XINFO STREAM tells. No payload, but the heads of the first and last batch.
_LOOK = f"""
local out = redis.call('HMGET', KEYS[2], {_FIELDS})
local n = #out
local function add(value) n = n + 1; out[n] = value end
local function head(entry)
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
add(head(last))
add(redis.call('MEMORY', 'USAGE', KEYS[1]) or 0)
return out
"""

LOOK = _LOOK

# Take the log over. Arguments: form, fence, epoch at least. Carried out again, it does nothing more.
ATTACH = f"""
local h = redis.call('HMGET', KEYS[2], 'form', 'epoch', 'fence')
if h[1] and h[1] ~= ARGV[1] then return h[1] end
if h[3] ~= ARGV[2] then
  local epoch = math.max(tonumber(h[2] or '-1') + 1, tonumber(ARGV[3]))
  redis.call('HSET', KEYS[2], 'form', ARGV[1], 'fence', ARGV[2], 'epoch', string.format('%.0f', epoch))
end
{_LOOK}"""

# Set fields of the state, if the log is still ours. Arguments: fence, then names and values.
SET = """
if redis.call('HGET', KEYS[2], 'fence') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[2], unpack(ARGV, 2))
return 1
"""

# Keep a log that was ours all the time, with another mark: what was sent under the one before is refused from now on.
# Arguments: our mark, the new one, then ids. Tells which of them are there. Carried out again, it does the same.
REGAIN = """
local h = redis.call('HMGET', KEYS[2], 'fence', 'end')
if h[1] ~= ARGV[1] and h[1] ~= ARGV[2] then return {0, h[2]} end
redis.call('HSET', KEYS[2], 'fence', ARGV[2])
local top = '0-0'
if redis.call('EXISTS', KEYS[1]) == 1 then
  local info = redis.call('XINFO', 'STREAM', KEYS[1])
  for i = 1, #info, 2 do if info[i] == 'last-generated-id' then top = info[i + 1] end end
end
local out = {1, h[2], top}
for i = 3, #ARGV do out[i + 1] = #redis.call('XRANGE', KEYS[1], ARGV[i], ARGV[i]) end
return out
"""

# Take entries away from the front. Arguments: fence ('' for a log that is not attached), lowest id that stays, how many
# bytes that is, then names and values to set.
TRIM = f"""
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
{_LOOK}"""
