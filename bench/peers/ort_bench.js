// Times ONNX Runtime on a tower written by onnx_export.py and compares what it computes with ours.
//
//   node ort_bench.js MODEL.onnx --inputs FILE --expected FILE --batch N [--seconds S]
//        [--rows N] [--repeats N] [--threads N] [--wait spinning|sleeping] [--optimized FILE]
//
// BENCH_ORT names the folder whose node_modules holds `onnxruntime-node`. Each FILE is safetensors:
// inputs with "pixels" (M,3,H,W) F32 or "tokens" (M,T) I32, expected with "mean" and "log_var" of
// the same M rows. The first --rows (default: one batch) are run in batches of N and compared
// before anything is timed; then the first N are timed as `penumbra bench encode` does. Prints JSON
// with that command's keys, the least and mean cosine of the means, and the largest difference of
// the log-variances. --optimized writes the graph that ran, to see what was fused.
'use strict';
const fs = require('fs');
const path = require('path');
const {createRequire} = require('module');
const {parseArgs} = require('util');

const DEFAULTS = {batch: '1', seconds: '3', repeats: '5', threads: '2', wait: 'spinning'};
const NAMES = ['inputs', 'expected', 'batch', 'rows', 'seconds', 'repeats', 'threads', 'wait',
               'optimized'];

function readArguments() {
  const options = {};
  for (const name of NAMES) options[name] = {type: 'string', default: DEFAULTS[name]};
  const {values, positionals} = parseArgs({options, allowPositionals: true});
  if (positionals.length !== 1 || !values.inputs || !values.expected)
    throw new Error('wanted: MODEL.onnx --inputs FILE --expected FILE');
  const batch = Number(values.batch);
  return {...values, model: positionals[0], batch, rows: Number(values.rows || batch)};
}

function loadRuntime() {
  const folder = process.env.BENCH_ORT;
  if (!folder) throw new Error('BENCH_ORT names no folder with onnxruntime-node in node_modules');
  const resolve = createRequire(path.join(path.resolve(folder), 'package.json'));
  const manifest = resolve.resolve('onnxruntime-node').replace(/(onnxruntime-node[\\/]).*$/,
                                                               '$1package.json');
  return {ort: resolve('onnxruntime-node'),
          version: JSON.parse(fs.readFileSync(manifest, 'utf8')).version};
}

// F32 and I32 arrays of a safetensors file by name, as {shape, data}.
function readArrays(file) {
  const bytes = fs.readFileSync(file);
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, start).toString());
  const arrays = {};
  for (const [name, entry] of Object.entries(header)) {
    const Kind = {F32: Float32Array, I32: Int32Array}[entry.dtype];
    if (name === '__metadata__' || !Kind) continue;
    const [begin, end] = entry.data_offsets;
    const data = new Uint8Array(bytes.subarray(start + begin, start + end)); // aligned copy
    arrays[name] = {shape: entry.shape, data: new Kind(data.buffer)};
  }
  return arrays;
}

function makeFeed(ort, inputs, first, n) {
  const name = inputs.pixels ? 'pixels' : 'tokens';
  if (!inputs[name]) throw new Error('the inputs hold neither "pixels" nor "tokens"');
  const {shape, data} = inputs[name];
  const width = data.length / shape[0];
  const rows = data.subarray(first * width, (first + n) * width);
  const dims = [n, ...shape.slice(1)];
  if (name === 'pixels') return {pixels: new ort.Tensor('float32', rows, dims)};
  return {tokens: new ort.Tensor('int64', BigInt64Array.from(rows, BigInt), dims)};
}

function cosine(a, b) {
  let ab = 0, aa = 0, bb = 0;
  for (let i = 0; i < a.length; i++) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / Math.sqrt(aa * bb);
}

// Compares those of the first args.rows rows that fill whole batches.
async function compare(session, ort, args, inputs, expected) {
  const {batch} = args, [nExpected, dim] = expected.mean.shape;
  const nRows = Math.min(args.rows, nExpected);
  const cosines = [];
  let worstLogVar = 0;
  for (let first = 0; first + batch <= nRows; first += batch) {
    const got = await session.run(makeFeed(ort, inputs, first, batch));
    for (let i = 0; i < batch; i++) {
      const at = (first + i) * dim;
      cosines.push(cosine(got.mean.data.subarray(i * dim, (i + 1) * dim),
                          expected.mean.data.subarray(at, at + dim)));
      for (let k = 0; k < dim; k++)
        worstLogVar = Math.max(worstLogVar, Math.abs(got.log_var.data[i * dim + k] -
                                                     expected.log_var.data[at + k]));
    }
  }
  if (cosines.length === 0) throw new Error(`fewer than ${batch} rows to compare`);
  return {rows: cosines.length, min_cosine: Math.min(...cosines),
          mean_cosine: cosines.reduce((a, b) => a + b) / cosines.length,
          max_log_var_difference: worstLogVar};
}

async function measure(run, seconds, repeats) {
  const times = [], start = performance.now();
  while (times.length < repeats || performance.now() - start < seconds * 1000) {
    const before = performance.now();
    await run();
    times.push((performance.now() - before) / 1000);
  }
  return times.sort((a, b) => a - b);
}

function median(sorted) {
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

async function main() {
  const args = readArguments();
  const {ort, version} = loadRuntime();
  const threads = Number(args.threads);
  const session = await ort.InferenceSession.create(args.model, {
    intraOpNumThreads: threads, interOpNumThreads: 1, graphOptimizationLevel: 'all',
    executionProviders: ['cpu'], executionMode: 'sequential',
    freeDimensionOverrides: {batch: args.batch},
    extra: {session: {intra_op: {allow_spinning: args.wait === 'spinning' ? '1' : '0'}}},
    ...(args.optimized ? {optimizedModelFilePath: args.optimized} : {})});
  const inputs = readArrays(args.inputs);
  const agreement = await compare(session, ort, args, inputs, readArrays(args.expected));
  const feed = makeFeed(ort, inputs, 0, args.batch);
  const times = await measure(() => session.run(feed), Number(args.seconds), Number(args.repeats));
  console.log(JSON.stringify({
    runtime: 'onnxruntime-node ' + version, model: args.model, batch: args.batch, threads,
    wait: args.wait, repeats: times.length, median_s: median(times), min_s: times[0],
    max_s: times[times.length - 1], items_per_s: args.batch / median(times),
    peak_rss_mb: process.resourceUsage().maxRSS * 1024 / 1e6, ...agreement}));
}

main().catch((e) => {
  console.error('ort_bench.js: ' + e.message);
  process.exit(1);
});
