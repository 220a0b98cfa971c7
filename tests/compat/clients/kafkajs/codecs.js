'use strict'
// KafkaJS itself has gzip only; it lets the other codecs be plugged in.

const { CompressionCodecs, CompressionTypes } = require('kafkajs')
const SnappyCodec = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const { ZstdCodec } = require('zstd-codec')

/** Until zstd's machine code is ready. */
async function loadCodecs() {
  const zstd = await new Promise(resolve => ZstdCodec.run(resolve))
  const streaming = new zstd.Streaming() // most clients do not write the size into the frame
  CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: encoder => lz4.compressFrame(encoder.buffer),
    decompress: buffer => lz4.decompressFrame(buffer),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async encoder => Buffer.from(streaming.compress(encoder.buffer)),
    decompress: async buffer => Buffer.from(streaming.decompress(buffer)),
  })
}

module.exports = { loadCodecs }
