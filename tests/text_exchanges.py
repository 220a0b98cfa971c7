"""Exchanges of the text protocol: what is sent, and what has to come back, over any store.

`> ` begins a line that is sent and `< ` the answer to it, `<< ` an answer behind which the connection is closed. Each
script has a connection, a topic `$t` (and `$u`) and a group `$g` of its own; topics have three partitions. `$p[key]` is
the partition of a key, `*` a number, and other words with a `$` are those of `SENTENCES`. Lines of a script mean the
same whether they come one by one or at once.
"""

import re

PARTITIONS = 3
# What many answers say.
SENTENCES = {
    "$consume": "write: topic partition offset [max=n] [encoding=plain|percent|base64]",
    "$blank": "one blank between two arguments",
    "$name": "a topic's name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'",
    "$bytes": "a line is UTF-8, without NUL, and without CR but at its end",
    "$many": "from 0 to 9223372036854775807",
    "$bars": "a line is V1|id|COMMAND|arguments; the last bar stands even without arguments",
}

ENVELOPE = """
> V1|99|PING|
< V1|99|OK|pong
> V1|a b;c|PING|
< V1|a b;c|OK|pong
> V1|é|PING|
< V1|é|OK|pong
> V1|1|PING|now
< V1|1|ERR|BAD_REQUEST|write: nothing; $blank
> V1|1|PING|\x20
< V1|1|ERR|BAD_REQUEST|write: nothing; $blank
> V1|1|PING
< V1|0|ERR|BAD_REQUEST|$bars
> V1|1
< V1|0|ERR|BAD_REQUEST|$bars
> V1
< V1|0|ERR|BAD_REQUEST|$bars
>
< V1|0|ERR|BAD_REQUEST|$bars
> |||
< V1|0|ERR|BAD_REQUEST|the version is V1
> V2|1|PING|
< V1|0|ERR|BAD_REQUEST|the version is V1
> v1|1|PING|
< V1|0|ERR|BAD_REQUEST|the version is V1
> V1||PING|
< V1|0|ERR|BAD_REQUEST|the correlation id and the command may not be empty
> V1|1||
< V1|0|ERR|BAD_REQUEST|the correlation id and the command may not be empty
> V1||PRODUCE|$t k:v
< V1|0|ERR|BAD_REQUEST|the correlation id and the command may not be empty
> V1|1|PRODUCE
< V1|0|ERR|BAD_REQUEST|$bars
> V1|7|PING|\r
< V1|7|OK|pong
> V1|8|PING|\r\r
< V1|0|ERR|BAD_REQUEST|a line holds no NUL, and no CR but at its end
> V1|8\r|PING|
< V1|0|ERR|BAD_REQUEST|a line holds no NUL, and no CR but at its end
> V1|8|PI\0NG|
< V1|0|ERR|BAD_REQUEST|a line holds no NUL, and no CR but at its end
> V1|8|PING|\udcff
< V1|0|ERR|BAD_REQUEST|a line is UTF-8
> V1|\udcc3|PRODUCE|$t k:v
< V1|0|ERR|BAD_REQUEST|$bytes
> V1|9|PING|
< V1|9|OK|pong
---
> V1|1|BREW|coffee
< V1|1|ERR|UNKNOWN_COMMAND|there is no such command
> V1|2|ping|
< V1|2|ERR|UNKNOWN_COMMAND|there is no such command
> V1|3|PING|
< V1|3|OK|pong
> V1|4|PING |
< V1|4|ERR|UNKNOWN_COMMAND|there is no such command
> V1|5|produce|$t k:v
< V1|5|ERR|UNKNOWN_COMMAND|there is no such command
> V1|6|<script>|
<< V1|6|ERR|UNKNOWN_COMMAND|there is no such command
---
> GET / HTTP/1.1
<< V1|0|ERR|BAD_REQUEST|this port speaks the text protocol only
---
> POST /topics HTTP/1.1
<< V1|0|ERR|BAD_REQUEST|this port speaks the text protocol only
"""

PRODUCE = """
> V1|1|PRODUCE|$t user1:created acks=all
< V1|1|OK|partition=$p[user1] offset=0 hw=*
> V1|2|PRODUCE|$t user1:paid acks=all
< V1|2|OK|partition=$p[user1] offset=1 hw=*
> V1|3|PRODUCE|$t user1:sent acks=0
< V1|3|OK|partition=$p[user1] offset=2 hw=*
> V1|4|PRODUCE|$t user1:sent acks=1
< V1|4|OK|partition=$p[user1] offset=3 hw=*
> V1|5|PRODUCE|$t user1:sent
< V1|5|OK|partition=$p[user1] offset=4 hw=*
> V1|6|PRODUCE|$t user1:last acks=all\r
< V1|6|OK|partition=$p[user1] offset=5 hw=*
> V1|7|CONSUME|$t $p[user1] 0
< V1|7|OK|messages=0:created,1:paid,2:sent,3:sent,4:sent,5:last hw=6
---
> V1|1|PRODUCE|$t :first acks=all
< V1|1|OK|partition=0 offset=0 hw=*
> V1|2|PRODUCE|$t :second acks=all
< V1|2|OK|partition=1 offset=0 hw=*
> V1|3|PRODUCE|$t :third acks=all
< V1|3|OK|partition=2 offset=0 hw=*
> V1|4|PRODUCE|$t :fourth acks=all
< V1|4|OK|partition=0 offset=1 hw=*
> V1|5|PRODUCE|$t ::fifth acks=all
< V1|5|OK|partition=1 offset=1 hw=*
> V1|6|CONSUME|$t 1 0
< V1|6|OK|messages=0:second,1::fifth hw=2
---
> V1|1|PRODUCE|$t k:a value of several words acks=all
< V1|1|OK|partition=$p[k] offset=0 hw=*
> V1|2|PRODUCE|$t k:bars|||and:colons:: acks=all
< V1|2|OK|partition=$p[k] offset=1 hw=*
> V1|3|PRODUCE|$t k:  blanks  before and behind   acks=all
< V1|3|OK|partition=$p[k] offset=2 hw=*
> V1|4|PRODUCE|$t k: acks=all
< V1|4|OK|partition=$p[k] offset=3 hw=*
> V1|5|PRODUCE|$t k:acks=all acks=all
< V1|5|OK|partition=$p[k] offset=4 hw=*
> V1|6|PRODUCE|$t k:acks=0 in the middle acks=all
< V1|6|OK|partition=$p[k] offset=5 hw=*
> V1|7|PRODUCE|$t k:größer 日本 acks=all
< V1|7|OK|partition=$p[k] offset=6 hw=*
> V1|8|PRODUCE|$t k:100%,200% acks=all
< V1|8|OK|partition=$p[k] offset=7 hw=*
> V1|9|CONSUME|$t $p[k] 0 max=3
< V1|9|OK|messages=0:a value of several words,1:bars|||and:colons::,2:  blanks  before and behind   hw=8
> V1|10|CONSUME|$t $p[k] 3
< V1|10|OK|messages=3:,4:acks=all,5:acks=0 in the middle,6:größer 日本,7:100%,200% hw=8
> V1|11|CONSUME|$t $p[k] 6 encoding=percent
< V1|11|OK|messages=6:gr%C3%B6%C3%9Fer%20%E6%97%A5%E6%9C%AC,7:100%25%2C200%25 hw=8
> V1|12|CONSUME|$t $p[k] 6 encoding=base64
< V1|12|OK|messages=6:Z3LDtsOfZXIg5pel5pys,7:MTAwJSwyMDAl hw=8
> V1|13|CONSUME|$t $p[k] 6 max=1 encoding=base64
< V1|13|OK|messages=6:Z3LDtsOfZXIg5pel5pys hw=8
> V1|14|CONSUME|$t $p[k] 6 encoding=plain max=1
< V1|14|OK|messages=6:größer 日本 hw=8
---
> V1|1|PRODUCE|$t acks=1:5 acks=all
< V1|1|OK|partition=$p[acks=1] offset=0 hw=*
> V1|2|PRODUCE|$t two words:v acks=all
< V1|2|OK|partition=$p[two words] offset=* hw=*
> V1|3|PRODUCE|$t k:v acks=2
< V1|3|ERR|BAD_REQUEST|acks is 0, 1 or all
> V1|4|PRODUCE|$t k:v acks=ALL
< V1|4|ERR|BAD_REQUEST|acks is 0, 1 or all
> V1|5|PRODUCE|$t k:v acks=
< V1|5|ERR|BAD_REQUEST|acks is 0, 1 or all
> V1|6|PRODUCE|$t k:v acks=-1
< V1|6|ERR|BAD_REQUEST|acks is 0, 1 or all
> V1|7|PRODUCE|
< V1|7|ERR|BAD_REQUEST|PRODUCE takes: topic key:value [acks=0|1|all]
> V1|8|PRODUCE|$t
< V1|8|ERR|BAD_REQUEST|PRODUCE takes: topic key:value [acks=0|1|all]
> V1|9|PRODUCE|$t nothing
< V1|9|ERR|BAD_REQUEST|a message is written as key:value
> V1|10|PRODUCE|$t acks=all
< V1|10|ERR|BAD_REQUEST|a message is written as key:value
> V1|11|PRODUCE| k:v
< V1|11|ERR|BAD_REQUEST|$name
> V1|12|PRODUCE|../x k:v
< V1|12|ERR|BAD_REQUEST|$name
> V1|13|PRODUCE|.. k:v
< V1|13|ERR|BAD_REQUEST|$name
> V1|14|PRODUCE|tö k:v
< V1|14|ERR|BAD_REQUEST|$name
> V1|15|PRODUCE|$t k:\0
< V1|0|ERR|BAD_REQUEST|$bytes
> V1|16|PRODUCE|$t k:one\rV1|17|PING|
< V1|0|ERR|BAD_REQUEST|$bytes
> V1|18|PRODUCE|$t k:\udcfe
< V1|0|ERR|BAD_REQUEST|$bytes
> V1|19|PRODUCE|$t z:ok acks=all
< V1|19|OK|partition=$p[z] offset=* hw=*
---
> V1|1|PRODUCE|$t k:one acks=all
< V1|1|OK|partition=$p[k] offset=0 hw=*
> V1|2|PRODUCE|$u k:other acks=all
< V1|2|OK|partition=$p[k] offset=0 hw=*
> V1|3|PRODUCE|$t k
< V1|3|ERR|BAD_REQUEST|a message is written as key:value
> V1|4|PRODUCE|$t k:two acks=all
< V1|4|OK|partition=$p[k] offset=1 hw=*
> V1|5|CONSUME|$u $p[k] 0
< V1|5|OK|messages=0:other hw=1
> V1|6|CONSUME|$t $p[k] 0
< V1|6|OK|messages=0:one,1:two hw=2
---
> V1|1|PRODUCE|$t.x k:one acks=all
< V1|1|OK|partition=$p[k] offset=0 hw=*
> V1|2|PRODUCE|$t_x k:its name differs in a dot only acks=all
< V1|2|ERR|BAD_REQUEST|The topic name is not legal.
> V1|3|PRODUCE|$t.x k:two acks=all
< V1|3|OK|partition=$p[k] offset=1 hw=*
> V1|4|CONSUME|$t_x 0 0
< V1|4|ERR|UNKNOWN_TOPIC|there is no such topic or partition
"""

CONSUME = """
> V1|1|CONSUME|$t 0 0
< V1|1|ERR|UNKNOWN_TOPIC|there is no such topic or partition
> V1|2|PRODUCE|$t :v acks=all
< V1|2|OK|partition=0 offset=0 hw=*
> V1|3|CONSUME|$t 0 0
< V1|3|OK|messages=0:v hw=1
> V1|4|CONSUME|$t 0 1
< V1|4|OK|messages= hw=1
> V1|5|CONSUME|$t 0 1000000
< V1|5|OK|messages= hw=1
> V1|6|CONSUME|$t 0 9223372036854775807
< V1|6|OK|messages= hw=1
> V1|7|CONSUME|$t 0 9223372036854775808
< V1|7|ERR|BAD_REQUEST|offset is a whole number $many
> V1|8|CONSUME|$t 0 -1
< V1|8|ERR|BAD_REQUEST|offset is a whole number $many
> V1|9|CONSUME|$t 0 +1
< V1|9|ERR|BAD_REQUEST|offset is a whole number $many
> V1|10|CONSUME|$t 0 1e3
< V1|10|ERR|BAD_REQUEST|offset is a whole number $many
> V1|11|CONSUME|$t 0 1_0
< V1|11|ERR|BAD_REQUEST|offset is a whole number $many
> V1|12|CONSUME|$t 0 \u0661
< V1|12|ERR|BAD_REQUEST|offset is a whole number $many
> V1|13|CONSUME|$t 0 00000000000000000000000
< V1|13|ERR|BAD_REQUEST|offset is a whole number $many
> V1|14|CONSUME|$t 0 0007
< V1|14|OK|messages= hw=1
> V1|15|CONSUME|$t 1 0
< V1|15|OK|messages= hw=0
> V1|16|CONSUME|$t 3 0
< V1|16|ERR|UNKNOWN_TOPIC|there is no such topic or partition
> V1|17|CONSUME|$t 4294967296 0
< V1|17|ERR|UNKNOWN_TOPIC|there is no such topic or partition
> V1|18|CONSUME|$t -1 0
< V1|18|ERR|BAD_REQUEST|partition is a whole number $many
> V1|19|CONSUME|$t x 0
< V1|19|ERR|BAD_REQUEST|partition is a whole number $many
> V1|20|CONSUME|$t 0
< V1|20|ERR|BAD_REQUEST|$consume; $blank
> V1|21|CONSUME|
< V1|21|ERR|BAD_REQUEST|$consume; $blank
> V1|22|CONSUME|$t  0 0
< V1|22|ERR|BAD_REQUEST|$consume; $blank
> V1|23|CONSUME|$t 0 0\x20
< V1|23|ERR|BAD_REQUEST|$consume; $blank
> V1|24|CONSUME|$t 0 0 max=1 max=1
< V1|24|ERR|BAD_REQUEST|$consume; each option once
> V1|25|CONSUME|$t 0 0 min=1
< V1|25|ERR|BAD_REQUEST|$consume; each option once
> V1|26|CONSUME|$t 0 0 1
< V1|26|ERR|BAD_REQUEST|$consume; each option once
> V1|27|CONSUME|$t 0 0 max=
< V1|27|ERR|BAD_REQUEST|max is a whole number $many
> V1|28|CONSUME|$t 0 0 max=-5
< V1|28|ERR|BAD_REQUEST|max is a whole number $many
> V1|29|CONSUME|$t 0 0 max=0
< V1|29|OK|messages= hw=1
> V1|30|CONSUME|$t 0 0 max=9223372036854775807
< V1|30|OK|messages=0:v hw=1
> V1|31|CONSUME|$t 0 0 encoding=hex
< V1|31|ERR|BAD_REQUEST|encoding is one of plain, percent, base64
> V1|32|CONSUME|$t 0 0 encoding=
< V1|32|ERR|BAD_REQUEST|encoding is one of plain, percent, base64
> V1|33|CONSUME|a/b 0 0
< V1|33|ERR|BAD_REQUEST|The topic name is not legal.
> V1|34|CONSUME|$t 0 0 max=1 encoding=plain extra
< V1|34|ERR|BAD_REQUEST|$consume; $blank
"""

GROUPS = """
> V1|1|JOIN|$g $t c1
< V1|1|ERR|UNKNOWN_TOPIC|there is no such topic or partition
> V1|2|PRODUCE|$t :v acks=all
< V1|2|OK|partition=0 offset=0 hw=*
> V1|3|JOIN|$g $t c1
< V1|3|OK|generation=1 assigned=[0,1,2]
> V1|4|JOIN|$g $t c1
< V1|4|OK|generation=1 assigned=[0,1,2]
> V1|5|HEARTBEAT|$g $t c1 1
< V1|5|OK|heartbeat=ok
> V1|6|SYNC|$g $t c1 1
< V1|6|OK|generation=1 assigned=[0,1,2]
> V1|7|JOIN|$g $t c2
< V1|7|OK|generation=2 assigned=[1]
> V1|8|HEARTBEAT|$g $t c1 1
< V1|8|ERR|GENERATION_MISMATCH|the group is at another generation: JOIN it again
> V1|9|SYNC|$g $t c1 1
< V1|9|ERR|GENERATION_MISMATCH|the group is at another generation: JOIN it again
> V1|10|JOIN|$g $t c1
< V1|10|OK|generation=2 assigned=[0,2]
> V1|11|SYNC|$g $t c2 2
< V1|11|OK|generation=2 assigned=[1]
> V1|12|SYNC|$g $t c2 3
< V1|12|ERR|GENERATION_MISMATCH|the group is at another generation: JOIN it again
> V1|13|HEARTBEAT|$g $t c3 2
< V1|13|ERR|GENERATION_MISMATCH|the group has no such member: JOIN it
> V1|14|HEARTBEAT|$g-other $t c1 2
< V1|14|ERR|GENERATION_MISMATCH|the group has no such member: JOIN it
> V1|15|HEARTBEAT|$g $u c1 2
< V1|15|ERR|GENERATION_MISMATCH|the group has no such member: JOIN it
> V1|16|LEAVE|$g $t c3 2
< V1|16|ERR|GENERATION_MISMATCH|the group has no such member: JOIN it
> V1|17|LEAVE|$g $t c1 1
< V1|17|ERR|GENERATION_MISMATCH|the group is at another generation: JOIN it again
> V1|18|LEAVE|$g $t c1 2
< V1|18|OK|left=true
> V1|19|LEAVE|$g $t c1 2
< V1|19|ERR|GENERATION_MISMATCH|the group has no such member: JOIN it
> V1|20|HEARTBEAT|$g $t c2 2
< V1|20|ERR|GENERATION_MISMATCH|the group is at another generation: JOIN it again
> V1|21|JOIN|$g $t c2
< V1|21|OK|generation=3 assigned=[0,1,2]
> V1|22|JOIN|$g $t c9 assignor=range
< V1|22|ERR|BAD_REQUEST|the members of this group use the other assignor
> V1|23|JOIN|$g $t c2 assignor=range
< V1|23|OK|generation=4 assigned=[0,1,2]
> V1|24|JOIN|$g $t c9 assignor=range
< V1|24|OK|generation=5 assigned=[2]
> V1|25|SYNC|$g $t c2 5
< V1|25|OK|generation=5 assigned=[0,1]
> V1|26|JOIN|$g $t c8 assignor=round_robin
< V1|26|ERR|BAD_REQUEST|the members of this group use the other assignor
> V1|27|PRODUCE|$u :v acks=all
< V1|27|OK|partition=0 offset=0 hw=*
> V1|28|JOIN|$g $u c8
< V1|28|ERR|BAD_REQUEST|the members of this group read another topic
> V1|29|LEAVE|$g $t c2 5
< V1|29|OK|left=true
> V1|30|LEAVE|$g $t c9 6
< V1|30|OK|left=true
> V1|31|JOIN|$g $u c8
< V1|31|OK|generation=8 assigned=[0,1,2]
> V1|32|LEAVE|$g $u c8 8
< V1|32|OK|left=true
---
> V1|1|PRODUCE|$t :v acks=all
< V1|1|OK|partition=0 offset=0 hw=*
> V1|2|JOIN|$g $t a
< V1|2|OK|generation=1 assigned=[0,1,2]
> V1|3|JOIN|$g $t b
< V1|3|OK|generation=2 assigned=[1]
> V1|4|JOIN|$g $t c
< V1|4|OK|generation=3 assigned=[2]
> V1|5|JOIN|$g $t d
< V1|5|OK|generation=4 assigned=[]
> V1|6|SYNC|$g $t a 4
< V1|6|OK|generation=4 assigned=[0]
> V1|7|JOIN|$g
< V1|7|ERR|BAD_REQUEST|write: group topic consumer [assignor=round_robin|range]; $blank
> V1|8|JOIN|$g $t e assignor=sticky
< V1|8|ERR|BAD_REQUEST|assignor is one of round_robin, range
> V1|9|JOIN|$g $t e range
< V1|9|ERR|BAD_REQUEST|write: group topic consumer [assignor=round_robin|range]; each option once
> V1|10|SYNC|$g $t a
< V1|10|ERR|BAD_REQUEST|write: group topic consumer generation; $blank
> V1|11|SYNC|$g $t a four
< V1|11|ERR|BAD_REQUEST|generation is a whole number $many
> V1|12|HEARTBEAT|$g $t a -4
< V1|12|ERR|BAD_REQUEST|generation is a whole number $many
> V1|13|LEAVE|$g $t a 4 now
< V1|13|ERR|BAD_REQUEST|write: group topic consumer generation; $blank
> V1|14|JOIN|$g a/b e
< V1|14|ERR|BAD_REQUEST|The topic name is not legal.
"""

OFFSETS = """
> V1|1|OFFSET|$g $t 0
< V1|1|OK|offset=-1
> V1|2|PRODUCE|$t :v acks=all
< V1|2|OK|partition=0 offset=0 hw=*
> V1|3|JOIN|$g $t c1
< V1|3|OK|generation=1 assigned=[0,1,2]
> V1|4|OFFSET|$g $t 0
< V1|4|OK|offset=-1
> V1|5|COMMIT|$g $t c1 1 0 1
< V1|5|OK|committed=true
> V1|6|OFFSET|$g $t 0
< V1|6|OK|offset=1
> V1|7|OFFSET|$g $t 1
< V1|7|OK|offset=-1
> V1|8|COMMIT|$g $t c1 1 0 9223372036854775807
< V1|8|OK|committed=true
> V1|9|OFFSET|$g $t 0
< V1|9|OK|offset=9223372036854775807
> V1|10|COMMIT|$g $t c1 1 0 0
< V1|10|OK|committed=true
> V1|11|OFFSET|$g $t 0
< V1|11|OK|offset=0
> V1|12|COMMIT|$g $t c1 2 0 5
< V1|12|ERR|GENERATION_MISMATCH|the group is at another generation: JOIN it again
> V1|13|COMMIT|$g $t c2 1 0 5
< V1|13|ERR|GENERATION_MISMATCH|the group has no such member: JOIN it
> V1|14|JOIN|$g $t c2
< V1|14|OK|generation=2 assigned=[1]
> V1|15|COMMIT|$g $t c2 2 0 5
< V1|15|ERR|GENERATION_MISMATCH|the partition is not assigned to this member
> V1|16|COMMIT|$g $t c2 2 1 5
< V1|16|OK|committed=true
> V1|17|COMMIT|$g $t c2 2 7 5
< V1|17|ERR|GENERATION_MISMATCH|the partition is not assigned to this member
> V1|18|COMMIT|$g $t c1 1 0 5
< V1|18|ERR|GENERATION_MISMATCH|the group is at another generation: JOIN it again
> V1|19|COMMIT|$g $u c2 2 1 5
< V1|19|ERR|GENERATION_MISMATCH|the partition is not assigned to this member
> V1|20|COMMIT|$g $t c2 2 1 -5
< V1|20|ERR|BAD_REQUEST|offset is a whole number $many
> V1|21|COMMIT|$g $t c2 2 1
< V1|21|ERR|BAD_REQUEST|write: group topic consumer generation partition offset; $blank
> V1|22|COMMIT|$g-none $t c2 2 1 5
< V1|22|ERR|GENERATION_MISMATCH|the group has no such member: JOIN it
> V1|23|OFFSET|$g $t
< V1|23|ERR|BAD_REQUEST|write: group topic partition; $blank
> V1|24|OFFSET|$g $t 0 0
< V1|24|ERR|BAD_REQUEST|write: group topic partition; $blank
> V1|25|OFFSET|$g $t zero
< V1|25|ERR|BAD_REQUEST|partition is a whole number $many
> V1|26|OFFSET|$g $t 99
< V1|26|OK|offset=-1
> V1|27|OFFSET|$g $t 1
< V1|27|OK|offset=5
"""

PEERS = """
> V1|1|REPLICA_FETCH|$t 0 1 5
< V1|1|ERR|UNAUTHORIZED|this is for the broker's peers, and it has none
> V1|2|REPLICA_FETCH|$t 0 1 5 max_bytes=1000
< V1|2|ERR|UNAUTHORIZED|this is for the broker's peers, and it has none
> V1|3|REPLICA_FETCH|$t 0 1
< V1|3|ERR|BAD_REQUEST|write: topic partition replica_id offset [max_bytes=n] [epoch=n]; $blank
> V1|4|REPLICA_FETCH|$t 0 -1 5
< V1|4|ERR|BAD_REQUEST|replica_id is a whole number $many
> V1|5|REPLICA_FETCH|$t 0 1 99999999999999999999
< V1|5|ERR|BAD_REQUEST|offset is a whole number $many
> V1|6|SET_PARTITION_ROLE|$t 0 follower
< V1|6|ERR|UNAUTHORIZED|this is for the broker's peers, and it has none
> V1|7|SET_PARTITION_ROLE|$t 0 leader
< V1|7|ERR|UNAUTHORIZED|this is for the broker's peers, and it has none
> V1|8|SET_PARTITION_ROLE|$t 0 king
< V1|8|ERR|BAD_REQUEST|role is one of leader, follower
> V1|9|SET_PARTITION_ROLE|$t leader
< V1|9|ERR|BAD_REQUEST|write: topic partition leader|follower; $blank
> V1|9|CHALLENGE|2 00
< V1|9|ERR|UNAUTHORIZED|this is for the broker's peers, and it has none
> V1|9|PROVE|
< V1|9|ERR|BAD_REQUEST|write: proof; $blank
> V1|10|PRODUCE|$t k:still taken acks=all
< V1|10|OK|partition=$p[k] offset=0 hw=*
"""

Exchange = tuple[bytes, str]  # a line that is sent, and the answer's pattern
TABLES = {
    "envelope": ENVELOPE,
    "produce": PRODUCE,
    "consume": CONSUME,
    "groups": GROUPS,
    "offsets": OFFSETS,
    "peers": PEERS,
}


def partition_of(key: str) -> int:
    """FNV-1a of 32 bits, modulo partitions."""
    found = 0x811C9DC5
    for byte in key.encode():
        found = (found ^ byte) * 0x01000193 % (1 << 32)
    return found % PARTITIONS


def read_script(text: str, name: str) -> tuple[list[Exchange], bool]:
    """A script's exchanges, and whether the connection is closed behind them. `name`: of its topics and group."""
    text = re.sub(r"\$p\[(.*?)\]", lambda found: str(partition_of(found[1])), text)
    for sign, sentence in SENTENCES.items():
        text = text.replace(sign, sentence)
    text = text.replace("$t", f"{name}-t").replace("$u", f"{name}-u").replace("$g", f"{name}-g")
    exchanges, sent, closed = [], b"", False
    for line in text.strip("\n").split("\n"):
        if line.startswith("<"):
            closed = line.startswith("<< ")
            exchanges.append((sent, re.escape(line.partition(" ")[2]).replace(r"=\*", r"=\d+")))
        else:
            sent = line[2:].encode(errors="surrogateescape") + b"\n"
    return exchanges, closed


def scripts() -> list[tuple[str, str]]:
    """All scripts, each with a name."""
    return [
        (f"{name}-{number}", script)
        for name, table in TABLES.items()
        for number, script in enumerate(table.split("---\n"))
    ]
