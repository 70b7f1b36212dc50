#!/bin/bash
# serve: npm's `openai` package, as anybody installs it, works unchanged. Left out where node or the
# package are missing; NODE_PATH says where it is, else npm's global folder is looked at.
source "$(dirname "$0")/common/lib.sh"
source "$(dirname "$0")/common/serve.sh"
command -v node >/dev/null || {
    echo "skipped: node is not installed"
    exit 77
}
NODE_PATH=${NODE_PATH:-$(npm root -g 2>/dev/null || true)}
export NODE_PATH
node -e 'require.resolve("openai")' 2>/dev/null || {
    echo "skipped: npm's openai package is not installed (npm install -g openai)"
    exit 77
}
make_small
make_pictures train
echo 0123456789abcdef0123 >keys
start_server -m model --alias small --api-key-file keys
cat >client.js <<'END'
const assert = require("assert"), fs = require("fs");
const { OpenAI, NotFoundError, AuthenticationError, BadRequestError } = require("openai");
const at = { baseURL: process.env.url + "/v1", maxRetries: 0 };
const client = new OpenAI({ ...at, apiKey: "0123456789abcdef0123" });
const near = (a, b) => a.length === b.length && a.every((x, i) => Math.abs(x - b[i]) < 1e-6);
(async () => {
  const models = await client.models.list();
  assert.equal(models.data[0].id, "small");
  const plain = await client.embeddings.create({ model: "small", input: ["a red star", "a ring"], encoding_format: "float" });
  const coded = await client.embeddings.create({ model: "small", input: ["a red star", "a ring"] }); // base64 by itself
  assert.equal(plain.object, "list");
  assert.equal(plain.data.length, 2);
  assert.deepEqual(plain.data.map((d) => d.index), [0, 1]);
  for (let i = 0; i < 2; i++) assert(near(plain.data[i].embedding, Array.from(coded.data[i].embedding)));
  assert(Math.abs(Math.hypot(...plain.data[0].embedding) - 1) < 1e-5);
  assert(plain.usage.prompt_tokens > 0);
  const file = fs.readdirSync("pictures").map((f) => "pictures/" + f)[0];
  const url = "data:image/png;base64," + fs.readFileSync(file).toString("base64");
  const picture = await client.embeddings.create({ model: "small", input: url });
  assert.equal(picture.data[0].embedding.length, plain.data[0].embedding.length);
  await assert.rejects(client.embeddings.create({ model: "other", input: "a" }), NotFoundError);
  await assert.rejects(client.embeddings.create({ model: "small", input: "a", dimensions: 3 }), BadRequestError);
  await assert.rejects(new OpenAI({ ...at, apiKey: "0123456789abcdef0124" }).models.list(), AuthenticationError);
})().catch((e) => { console.error(e); process.exit(1); });
END
node client.js >out 2>err
check "the openai client" test $? -eq 0
cat err
stop_server
finish
