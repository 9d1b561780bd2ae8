// kafkajs, driven by lines; see child_drivers.py.
'use strict'

const fs = require('fs')
const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const WAIT_MS = 8000
let kafka = null
let producer = null

function settings(asked) {
  const made = {
    brokers: [asked.servers], clientId: asked.client_id, logLevel: logLevel.NOTHING,
    connectionTimeout: 5000, requestTimeout: WAIT_MS - 1000, authenticationTimeout: 5000,
    reauthenticationThreshold: 500, // 10 s by default, which is before the login where a session lasts 2 s
    retry: { retries: 2 },
  }
  if (asked.ca) {
    made.ssl = { ca: [fs.readFileSync(asked.ca)] }
    if (asked.pair) made.ssl.cert = made.ssl.key = fs.readFileSync(asked.pair)
  }
  if (asked.mechanism === 'OAUTHBEARER') {
    made.sasl = { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: fs.readFileSync(asked.token, 'utf8') }) }
  } else if (asked.mechanism) {
    made.sasl = { mechanism: asked.mechanism.toLowerCase(), username: asked.user, password: asked.password }
  }
  return made
}

async function read(topic) {
  const consumer = kafka.consumer({ groupId: topic })
  try {
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    return await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, event => reject(event.payload.error))
      consumer.run({ eachMessage: async ({ message }) => resolve(String(message.value.length)) }).catch(reject)
    })
  } finally {
    await consumer.disconnect()
  }
}

async function answer(asked) {
  switch (asked.do) {
    case 'version':
      return require('kafkajs/package.json').version
    case 'open':
      kafka = new Kafka(settings(asked))
      producer = kafka.producer()
      await producer.connect()
      return ''
    case 'send':
      await producer.send({ topic: asked.topic, messages: [{ value: Buffer.alloc(Number(asked.size)), partition: 0 }] })
      return ''
    case 'read':
      return read(asked.topic)
    case 'close':
      if (producer) await producer.disconnect()
      producer = null
      return ''
  }
  throw new Error(asked.do)
}

async function main() {
  process.on('unhandledRejection', () => {}) // of a login that was given up
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const asked = {}
    for (const word of line.split(' ')) {
      const at = word.indexOf('=')
      asked[word.slice(0, at)] = Buffer.from(word.slice(at + 1), 'hex').toString()
    }
    let word = 'ok'
    let said
    try {
      said = await answer(asked)
    } catch (error) {
      word = 'error'
      said = [error, error.cause].filter(Boolean).map(one => `${one.name}: ${one.message}`).join('; ')
    }
    console.log(`${word} ${Buffer.from(said).toString('hex')}`)
  }
}

main()
