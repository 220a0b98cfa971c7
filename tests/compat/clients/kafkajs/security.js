'use strict'
// CLIENT_SECURITY as KafkaJS takes it: how a client logs in, inside TLS. `ca`, `certificate` and `token` are files.

const { readFileSync } = require('node:fs')

/** The settings of security that the driver was given: none without CLIENT_SECURITY. */
function secure() {
  if (!process.env.CLIENT_SECURITY) return {}
  const given = JSON.parse(process.env.CLIENT_SECURITY)
  const ssl = { ca: readFileSync(given.ca) }
  if (given.certificate) ssl.key = ssl.cert = readFileSync(given.certificate)
  return given.mechanism ? { ssl, sasl: login(given) } : { ssl }
}

function login({ mechanism, user, password, token }) {
  if (!token) return { mechanism: mechanism.toLowerCase(), username: user, password }
  return { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: readFileSync(token, 'utf8') }) }
}

module.exports = { secure }
