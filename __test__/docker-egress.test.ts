// An allow list in a container, both ways of keeping it: what is on it works, and nothing else does.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { describe, test } from 'node:test';
import { createCredentialBroker, SubprocessSandbox, type SubprocessSandboxOptions } from 'croft';
import { upstreamBroker } from './support/docker-cases.js';
import { eventually } from './support/processes.js';
import { api, IMAGE, run, TOOLS, uniqueLabel, withEngine, withSandbox } from './support/docker.js';

const WAYS = ['socket', 'network'] as const;
const curl = "curl -s -m 4 -o /dev/null -w '%{http_code} '";

function hostAddress(): string {
  const all = Object.values(networkInterfaces()).flat();
  return all.find((one) => one?.family === 'IPv4' && !one.internal)?.address ?? '127.0.0.1';
}

describe('egress', withEngine, () => {
  for (const egress of WAYS) {
    test(`an allowed host answers with the injected header, the token stays outside (${egress})`, async () => {
      await upstreamBroker('api.example', async (network, port) => {
        const own: Partial<SubprocessSandboxOptions> = { ...network, egress, image: TOOLS, user: '1234:1234', readOnlyRoot: true };
        const { stdout } = await run(`curl -s -m 5 http://api.example:${port}/; env; for file in /proc/*/environ /proc/*/cmdline; do tr '\\0' '\\n' <$file; done 2>/dev/null`, { timeoutMs: 60_000 }, own);
        assert.ok(stdout.startsWith('hello with Bearer t0ken\n'), stdout);
        assert.doesNotMatch(stdout.slice(24), /t0ken/);
        const path = await run(`curl -s -m 5 -o /dev/null -w '%{http_code}' "$HTTP_PROXY/__broker/other.example/x"`, { timeoutMs: 60_000 }, own);
        assert.equal(path.stdout, '403', 'the path form reaches the broker, which refuses the host');
      });
    });

    test(`other hosts, addresses, DNS, UDP, metadata, containers and the engine do not answer (${egress})`, async () => {
      const service = createServer((socket) => socket.on('error', () => {}).end('HTTP/1.0 200 OK\r\n\r\nx'));
      await new Promise<void>((resolve) => service.listen(0, '0.0.0.0', resolve));
      const { port } = service.address() as { port: number };
      try {
        await upstreamBroker('api.example', async (network) => {
          await withSandbox(
            async ({ shell }) => {
              const refused = await shell.exec(`${curl} http://evil.example/; ${curl} http://169.254.169.254/; ${curl} http://${hostAddress()}:${port}/; ${curl} http://0x0a000001/`, { timeoutMs: 60_000 });
              assert.equal(refused.stdout, '403 403 403 403 ');
              const direct = [`http://${hostAddress()}:${port}/`, 'http://169.254.169.254/', `http://172.17.0.1:${port}/`, `http://127.0.0.1:${port}/`, 'http://1.1.1.1/', 'http://api.example/'];
              const tried = await shell.exec(direct.map((url) => `${curl} --noproxy '*' ${url}`).join('; '), { timeoutMs: 60_000 });
              assert.equal(tried.stdout, '000 '.repeat(direct.length));
              const others = await shell.exec(
                `${curl} --unix-socket /var/run/docker.sock http://d/info; (exec 3<>/dev/udp/8.8.8.8/53 && printf x >&3) 2>/dev/null && echo sent; node -e "require('dns').lookup('example.com', (error, found) => console.log(error ? 'no name' : found))"`,
                { timeoutMs: 60_000 },
              );
              assert.match(others.stdout, /^000 (sent\n)?no name\n$/);
            },
            { ...network, egress, image: TOOLS },
          );
        });
      } finally {
        service.close();
      }
    });

    test(`a tunnel is checked against the list too (${egress})`, async () => {
      await upstreamBroker('api.example', async (network, port) => {
        const { stdout } = await run(`${curl} -p http://api.example:${port}/; ${curl} -p http://evil.example:${port}/`, { timeoutMs: 60_000 }, { ...network, egress, image: TOOLS });
        assert.equal(stdout, '200 000 ');
      });
    });
  }

  test('in socket mode nothing of the host is reachable, not even a service on all addresses', async () => {
    const service = createServer((socket) => socket.on('error', () => {}).end('reached'));
    await new Promise<void>((resolve) => service.listen(0, '0.0.0.0', resolve));
    const { port } = service.address() as { port: number };
    let heard = 0;
    const datagrams = createSocket('udp4', () => (heard += 1));
    await new Promise<void>((resolve) => datagrams.bind(0, '0.0.0.0', resolve));
    const { port: udpPort } = datagrams.address();
    const send = `bash -c 'for host in 127.0.0.1 172.17.0.1 ${hostAddress()}; do echo sent >/dev/udp/$host/${udpPort}; done' 2>/dev/null; true`;
    try {
      await upstreamBroker('api.example', async (network) => {
        const { stdout } = await run(`ip -o -4 addr; for host in 127.0.0.1 172.17.0.1 ${hostAddress()}; do nc -w 2 $host ${port} </dev/null; done; true`, { timeoutMs: 60_000 }, { ...network, egress: 'socket' });
        assert.match(stdout, /^1: lo .*\n$/);
        await run(send, { timeoutMs: 60_000 }, { ...network, egress: 'socket', image: TOOLS });
        assert.equal(heard, 0);
      });
      // The twin: where the network is open, the very same datagram arrives.
      await run(send, { timeoutMs: 60_000 }, { network: 'default', image: TOOLS });
      await eventually('the datagram arrived', () => heard > 0);
    } finally {
      service.close();
      datagrams.close();
    }
  });

  for (const egress of [...WAYS, 'default'] as const) {
    test(`another container ${egress === 'default' ? 'answers where the network is open' : 'does not answer, of this sandbox or of another'} (${egress})`, async () => {
      await upstreamBroker('api.example', async (network) => {
        const options: Partial<SubprocessSandboxOptions> = egress === 'default' ? { network: 'default' } : { ...network, egress };
        await withSandbox(async ({ root, sandbox, shell }) => {
          let output = '';
          const serve = 'echo served > index.html; ip -o -4 addr | grep -o "inet [0-9.]*"; echo up; exec httpd -f -p 8080';
          const onOutput = ({ text }: { text: string }): void => void (output += text);
          const server = await sandbox.spawn({ command: 'sh', args: ['-c', serve], cwd: root, onOutput });
          await eventually('it is up', () => output.endsWith('up\n'));
          const addresses = [...output.matchAll(/inet ([\d.]+)/g)].map(([, address]) => address);
          assert.equal(addresses.length, egress === 'socket' ? 1 : 2, output);
          const line = addresses.map((address) => `for i in 1 2 3; do printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${address} 8080 && break; done`).join('; ');
          const answers = [(await shell.exec(line, { timeoutMs: 60_000 })).stdout, (await run(line, { timeoutMs: 60_000 }, options)).stdout];
          for (const answer of answers) assert.equal(/served/.test(answer), egress === 'default', answer);
          await server.kill();
        }, options);
      });
    });
  }

  test('two sandboxes with different lists at once do not see each other', async () => {
    await upstreamBroker('none.example', async (network, port) => {
      const one: Partial<SubprocessSandboxOptions> = { ...network, network: { allow: [`one.example:${port}`] }, image: TOOLS };
      const two: Partial<SubprocessSandboxOptions> = { ...network, network: { allow: [`two.example:${port}`] }, image: TOOLS, egress: 'network' };
      const line = `${curl} http://one.example:${port}/; ${curl} http://two.example:${port}/`;
      const results = await Promise.all([one, two, one].map((options) => run(line, { timeoutMs: 60_000 }, options)));
      assert.deepEqual(results.map(({ stdout }) => stdout), ['200 403 ', '403 200 ', '200 403 ']);
    }, ['one.example', 'two.example']);
  });

  test('pooled containers and those of a session have the way out too', async () => {
    await upstreamBroker('api.example', async (network, port) => {
      for (const reuse of ['pool', 'session'] as const) {
        await withSandbox(
          async ({ shell }) => {
            for (let round = 0; round < 3; round++) assert.equal((await shell.exec(`curl -s -m 5 http://api.example:${port}/`, { timeoutMs: 60_000 })).stdout, 'hello with Bearer t0ken\n');
          },
          { ...network, reuse, image: TOOLS },
        );
      }
    });
  });

  test('first commands that come together make one network, and a named one is reused only if it is internal', async () => {
    await upstreamBroker('api.example', async (network) => {
      const name = `croft-test-${process.pid}`;
      const named: Partial<SubprocessSandboxOptions> = { ...network, egress: 'network', networkName: name };
      await withSandbox(async ({ shell, labels }) => {
        await Promise.all([0, 1, 2].map(() => shell.exec('true', { timeoutMs: 60_000 })));
        const filters = encodeURIComponent(JSON.stringify({ label: Object.entries(labels).map(([key, value]) => `${key}=${value}`) }));
        const { body } = await api('GET', `/networks?filters=${filters}`);
        assert.equal(body.length, 1);
        assert.deepEqual([body[0].Name, body[0].Internal, body[0].EnableIPv6, body[0].Labels['com.lousho.sandbox']], [name, true, false, 'egress']);
      }, named);
      assert.equal((await api('GET', `/networks/${name}`)).status, 404);

      assert.equal((await api('POST', '/networks/create', { Name: name, Driver: 'bridge' })).status, 201);
      try {
        const sandbox = new SubprocessSandbox({ image: IMAGE, ...named });
        await assert.rejects(sandbox.run({ command: 'true', cwd: process.cwd() }), { code: 'LOUSHO_SANDBOX_EGRESS_UNSUPPORTED', message: /not internal/ });
        await sandbox.close();
      } finally {
        await api('DELETE', `/networks/${name}`);
      }

      assert.equal((await api('POST', '/networks/create', { Name: name, Driver: 'bridge', Internal: true })).status, 201);
      try {
        await withSandbox(async ({ shell }) => {
          assert.equal((await shell.exec('true', { timeoutMs: 60_000 })).exitCode, 0);
        }, named);
        assert.equal((await api('GET', `/networks/${name}`)).status, 200, 'somebody else made it and keeps it');
      } finally {
        await api('DELETE', `/networks/${name}`);
      }
    });
  });

  test('a list without a broker is no network, and the list is shown as it was checked', async () => {
    const { stdout } = await run('ip -o link | wc -l; echo "${HTTP_PROXY-none}"', { timeoutMs: 60_000 }, { network: { allow: ['example.com'] } });
    assert.equal(stdout, '1\nnone\n');
  });
});

test('names are checked when the sandbox is made', async () => {
  const broker = await createCredentialBroker({ rules: {} });
  const sandbox = new SubprocessSandbox({ image: IMAGE, broker, labels: uniqueLabel(), network: { allow: ['API.Example.ORG.', '*.example.net', 'example.com:8443'] } });
  assert.deepEqual(sandbox.network, { allow: ['api.example.org', '*.example.net', 'example.com:8443'] });
  for (const host of ['https://example.org', 'example.org/x', 'example.org:70000', 'a b', '', '*']) {
    assert.throws(() => new SubprocessSandbox({ image: IMAGE, network: { allow: [host] } }), { code: 'INVALID_ARGUMENT' });
  }
  await sandbox.close();
  await broker.close();
});
