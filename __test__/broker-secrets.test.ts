// A thousand requests that fail in every way, in a process of their own: nothing it prints, answers, reports or hands to a
// command holds an injected value.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const SECRETS = ['fixed-s3cret-aaaaaaaa', 'function-s3cret-bbbbbbbb', 'thrown-s3cret-cccccccc', 'invalid-s3cret-dddddddd', 'proxy-s3cret-eeeeeeee'];

test('1,000 failing requests show no injected value anywhere', { timeout: 180_000 }, () => {
  const script = fileURLToPath(new URL('./support/broker-failures.js', import.meta.url));
  const env: NodeJS.ProcessEnv = { ...process.env, SECRETS: SECRETS.join(','), NODE_DEBUG: 'http,net,tls' };
  delete env['NODE_TEST_CONTEXT'];
  // The debug output of Node's own client and server would show what they send and get; here it shows only the client's side,
  // the upstreams being raw sockets that print nothing.
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { env, encoding: 'utf8', maxBuffer: 1 << 30 });
  assert.equal(status, 0, stderr.slice(-2000));
  const { failed, reasons, events } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as { failed: number; reasons: string[]; events: number };
  assert.ok(failed >= 1000, `${failed} requests failed`);
  assert.ok(events >= 1000, `${events} events`);
  for (const reason of ['bad-framing', 'bad-host', 'cleartext-credential', 'connect-failed', 'dns-failed', 'header-function-failed', 'header-function-timeout', 'header-invalid', 'host-not-allowed', 'port-not-allowed', 'response-timeout', 'tls-failed', 'upstream-failed']) {
    assert.ok(reasons.includes(reason), `no request failed with ${reason}: ${reasons.join(' ')}`);
  }
  for (const secret of SECRETS) {
    const spellings = [secret, Buffer.from(secret).toString('base64').slice(0, 20), Buffer.from(secret).toString('hex'), encodeURIComponent(secret)];
    for (const text of spellings) assert.ok(!stdout.includes(text) && !stderr.includes(text), `${text} was shown`);
  }
});
