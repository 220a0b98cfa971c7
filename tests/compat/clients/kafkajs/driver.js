'use strict'
// The two ways to run: `serve BOOTSTRAP` answers commands from stdin, `member JSON` reads in a group until SIGTERM.

const { become } = require('./member')
const { serve } = require('./serve')

const [mode, argument] = process.argv.slice(2)

if (mode === 'serve' && argument) {
  serve(argument)
} else if (mode === 'member' && argument) {
  become(JSON.parse(argument))
} else {
  console.error('usage: serve BOOTSTRAP | member JSON')
  process.exitCode = 2
}
