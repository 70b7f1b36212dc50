// Writes the Parquet tables that other programs made, tests/fuzz/corpus/parquet/{arrow-rs,duckdb,hyparquet}-*:
//   npm install parquet-wasm@0.8.0 apache-arrow@21.2.0 @duckdb/node-api@1.5.6-r.1 hyparquet@1.33.0 hyparquet-writer@0.17.0
//   node parquet_foreign.mjs FOLDER
// The writers are arrow-rs (of parquet-wasm 0.8.0), DuckDB 1.5.6 and hyparquet-writer 0.17.0; hyparquet 1.33.0 reads
// the last one's. Each table is read back by its own writer's reader and compared with `values` before it stays, so
// that tests/io/tables/parquet/parquet_foreign.c, which has the same values, says what the writers meant.
import fs from 'fs'
import zlib from 'zlib'
import * as A from 'apache-arrow'
import * as P from 'parquet-wasm/node'
import duckdb from '@duckdb/node-api'
import { parquetReadObjects } from 'hyparquet'
import { parquetWriteBuffer } from 'hyparquet-writer'

const N = 24, folder = process.argv[2]
const hex = (x, n) => x.toString(16).padStart(n, '0')

// 24 x 24, of one gray.
function picture(gray) {
  const piece = (name, data) => {
    const out = Buffer.alloc(data.length + 12)
    out.writeUInt32BE(data.length)
    out.write(name, 4)
    data.copy(out, 8)
    out.writeUInt32BE(zlib.crc32(out.subarray(4, data.length + 8)), data.length + 8)
    return out
  }
  const head = Buffer.from([0, 0, 0, 24, 0, 0, 0, 24, 8, 0, 0, 0, 0])
  const rows = Buffer.concat(Array.from({ length: 24 }, () => Buffer.from([0, ...Array(24).fill(gray)])))
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), piece('IHDR', head),
    piece('IDAT', zlib.deflateSync(rows, { level: 9 })), piece('IEND', Buffer.alloc(0))])
}

// As img2dataset's and DataComp's tables: nulls in every column that may have them.
const values = {
  uid: i => hex(i, 32),
  key: i => String(i).padStart(9, '0'),
  url: i => i % 11 === 10 ? null : `https://x.example/${i % 4}/${i}.jpg`,
  caption: i => i % 5 === 4 ? null : ['a red star', 'étoile', 'a blue\n"square"'][i % 3],
  status: i => i % 7 === 6 ? 'failed_to_download' : 'success',
  error_message: () => null,
  width: i => i % 6 === 5 ? null : i * 3 - 10,
  original_width: i => i % 9 === 8 ? null : BigInt(i) * 10000000000n - 5n,
  clip_b32_similarity_score: i => i % 8 === 3 ? null : i * 0.5 - 1,
  clip_l14_similarity_score: i => i % 7 === 3 ? null : i / 10,
  nsfw: i => i % 4 === 2 ? null : i % 3 === 0,
  sha256: i => i % 13 === 12 ? null : hex(BigInt(i) * 0x9E3779B97F4A7C15n, 64),
  jpg: i => i % 7 === 6 ? null : picture(60 + i),
  id: i => 18446744073709551615n - BigInt(i),
}
const names = Object.keys(values).slice(0, 13), texts = names.slice(0, 6).concat('sha256')
const column = name => Array.from({ length: N }, (_, i) => values[name](i))
const plain = v => v == null ? null : v instanceof Uint8Array ? Buffer.from(v).toString('hex') : String(v)

function keep(name, bytes, got, which = names) {
  for (const c of which)
    for (let i = 0; i < N; i++)
      if (got(c).length !== N || plain(got(c)[i]) !== plain(values[c](i)))
        throw new Error(`${name}: ${c}[${i}] is ${plain(got(c)[i])}`)
  if (bytes)
    fs.writeFileSync(`${folder}/${name}`, bytes)
  console.log(name, fs.statSync(`${folder}/${name}`).size)
}

// ---- arrow-rs ----

const { Encoding: E, Compression: C } = P
const arrowTypes = { width: new A.Int32, original_width: new A.Int64, clip_b32_similarity_score: new A.Float32,
  clip_l14_similarity_score: new A.Float64, nsfw: new A.Bool, jpg: new A.Binary, caption: new A.LargeUtf8,
  id: new A.Uint64 }
function vector(type, items) {
  const b = A.makeBuilder({ type, nullValues: [null] })
  items.forEach(item => b.append(item))
  return b.finish().toVector()
}
function arrowRs(name, which, properties) {
  const columns = {}
  for (const c of which)
    columns[c] = vector(arrowTypes[c] ?? new A.Utf8, column(c))
  const list = type => new A.List(new A.Field('item', type, true)) // as DataComp's face_bboxes
  columns.face_bboxes = vector(list(list(new A.Float64)),
    Array.from({ length: N }, (_, i) => [null, [], [[0.5, i], []]][i % 3]))
  const table = P.Table.fromIPCStream(A.tableToIPC(new A.Table(columns), 'stream'))
  const bytes = P.writeParquet(table, properties(new P.WriterPropertiesBuilder()).build())
  const back = A.tableFromIPC(P.readParquet(bytes).intoIPCStream())
  keep(name, bytes, c => [...back.getChild(c)], which)
}
// Dictionaries, two row groups, some pages in each.
arrowRs('arrow-rs-1-snappy', names.slice(0, 12), b => b.setCompression(C.SNAPPY).setMaxRowGroupSize(14)
  .setDataPageSizeLimit(8).setWriteBatchSize(4).setStatisticsEnabled(P.EnabledStatistics.Page))
// Pages of version 2 in its encodings.
arrowRs('arrow-rs-2-zstd', names, b => {
  b = b.setCompression(C.ZSTD).setWriterVersion(P.WriterVersion.V2).setDictionaryEnabled(false).setMaxRowGroupSize(16)
    .setStatisticsEnabled(P.EnabledStatistics.None)
  texts.concat('jpg').forEach((c, i) => b = b.setColumnEncoding(c, i % 3 === 2 ? E.DELTA_LENGTH_BYTE_ARRAY : E.DELTA_BYTE_ARRAY))
  for (const [c, e] of [['width', E.DELTA_BINARY_PACKED], ['original_width', E.BYTE_STREAM_SPLIT], ['nsfw', E.RLE],
    ['clip_b32_similarity_score', E.BYTE_STREAM_SPLIT], ['clip_l14_similarity_score', E.BYTE_STREAM_SPLIT]])
    b = b.setColumnEncoding(c, e)
  return b
})
// A dictionary that became too large: PLAIN from there on, or of version 2 a difference.
const small = b => b.setCompression(C.GZIP).setDictionaryPageSizeLimit(90).setDataPageSizeLimit(60).setWriteBatchSize(4)
  .setStatisticsEnabled(P.EnabledStatistics.None)
arrowRs('arrow-rs-1-fallback', names.slice(0, 9), small)
arrowRs('arrow-rs-2-fallback', names.slice(0, 9), b => small(b).setWriterVersion(P.WriterVersion.V2))
// Columns of codecs that are not read among others.
arrowRs('arrow-rs-codecs', ['id', 'caption', 'url', 'sha256', 'width'], b => b.setCompression(C.UNCOMPRESSED)
  .setColumnCompression('url', C.BROTLI).setColumnCompression('sha256', C.LZ4_RAW).setColumnCompression('width', C.GZIP)
  .setStatisticsEnabled(P.EnabledStatistics.None))

// ---- DuckDB ----

const duckTypes = { width: 'INTEGER', original_width: 'BIGINT', clip_b32_similarity_score: 'FLOAT',
  clip_l14_similarity_score: 'DOUBLE', nsfw: 'BOOLEAN', jpg: 'BLOB' }
const db = await duckdb.DuckDBConnection.create()
const literal = (c, v) => v === null ? 'NULL' : c === 'jpg' ? `from_hex('${plain(v)}')` : `'${plain(v)}'`
const rows = Array.from({ length: N }, (_, i) => `(${i}, ${names.map(c => literal(c, values[c](i))).join()})`)
const casts = names.map(c => `${c}::${duckTypes[c] ?? 'VARCHAR'} AS ${c}`)
await db.run(`CREATE TABLE t AS SELECT i::INTEGER AS i, ${casts} FROM (VALUES ${rows}) AS v(i, ${names})`)
async function duck(name, which, more, options, config) {
  const path = `${folder}/${name}`
  await db.run(`COPY (SELECT ${which}${more} FROM t ORDER BY i) TO '${path}' (FORMAT parquet, ${options})`)
  const back = await db.runAndReadAll(`SELECT ${which} FROM read_parquet('${path}'${config ?? ''})`)
  keep(name, null, c => back.getColumns()[which.indexOf(c)].map(v => v?.bytes ?? v), which)
}
// Types beside the usual ones, lists and structs, bloom filters.
await duck('duckdb-1-types', ['key', 'caption', 'width'], `, concat('12345678-9abc-def0-8000-', lpad(to_hex(i), 12, '0'))::UUID AS uuid,
  (i / 4 - 2)::DECIMAL(9, 4) AS price, (i * 100000000001)::DECIMAL(18, 2) AS sum, i::DECIMAL(38, 3) AS wide,
  (4294967295 - i)::UINTEGER AS u32, (18446744073709551615 - i)::UBIGINT AS u64, (250 + i % 6)::UTINYINT AS u8,
  (i - 12)::TINYINT AS i8, (DATE '2024-01-01' + i) AS day, INTERVAL (i) DAY AS span, [width, i] AS tags,
  {'path': 'a/' || i || '.png', 'size': {'w': width}} AS image, '{"a": ' || i || '}' AS exif, i::HUGEINT AS huge`, 'CODEC snappy')
await duck('duckdb-2-zstd', names, '', 'CODEC zstd, PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 4')
await db.run("SET force_mbedtls_unsafe = 'true'") // what it writes with is fit to be refused
await db.run("PRAGMA add_parquet_key('k', '0123456789abcdef')")
await duck('duckdb-encrypted', ['key', 'caption'], '', "ENCRYPTION_CONFIG {footer_key: 'k'}", ", encryption_config = {footer_key: 'k'}")

// ---- hyparquet-writer ----

const hyTypes = { width: 'INT32', original_width: 'INT64', clip_b32_similarity_score: 'FLOAT',
  clip_l14_similarity_score: 'DOUBLE', nsfw: 'BOOLEAN', jpg: 'BYTE_ARRAY' }
async function hyparquet(name, which, more, about) {
  const columnData = which.map(c => ({ name: c, type: hyTypes[c] ?? 'STRING', data: column(c), ...about(c) }))
  const buffer = parquetWriteBuffer({ columnData: columnData.concat(more), rowGroupSize: [5, 13] })
  const back = await parquetReadObjects({ file: buffer, utf8: false })
  keep(name, Buffer.from(buffer), c => back.map(row => row[c]), which)
}
const numbers = f => Array.from({ length: N }, (_, i) => f(i))
// Page indexes, bloom filters and numbers of 16 bits.
await hyparquet('hyparquet-index', names.slice(0, 9),
  [{ name: 'half', type: 'FLOAT16', data: numbers(i => i % 5 === 1 ? null : i / 8 - 1) },
    { name: 'uuid', type: 'UUID', data: numbers(i => `12345678-9abc-def0-8000-${hex(i, 12)}`) }],
  c => ({ columnIndex: true, bloomFilter: c === 'uid' || c === 'url' }))
await hyparquet('hyparquet-delta', names,
  [{ name: 'half', type: 'FLOAT16', data: numbers(i => i % 5 === 1 ? null : i / 8 - 1), encoding: 'BYTE_STREAM_SPLIT' }],
  c => ({ statistics: false, encoding: hyTypes[c] === 'BOOLEAN' ? 'RLE' : !hyTypes[c] || c === 'jpg'
    ? ['DELTA_BYTE_ARRAY', 'DELTA_LENGTH_BYTE_ARRAY'][names.indexOf(c) % 2]
    : hyTypes[c].startsWith('INT') ? 'DELTA_BINARY_PACKED' : 'BYTE_STREAM_SPLIT' }))
