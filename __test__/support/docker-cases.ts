/** One function for each public-bug case about containers; what cannot be run here has its reason in LEFT_OUT. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCredentialBroker, SandboxShell, SubprocessSandbox, WorkspaceError, type CredentialBrokerOptions, type SandboxResult, type SubprocessSandboxOptions } from 'croft';
import { api, containersOf, IMAGE, networksOf, run, TOOLS, uniqueLabel, withSandbox } from './docker.js';
import { fakeEngine, frame, type Record_ } from './fake-engine.js';
import { alive, eventually, PACKAGE, uniqueSeconds } from './processes.js';

export const LEFT_OUT: Record<string, string> = {};

/** Wide on a shared machine: these tests ask that nothing hangs, not how fast it is. */
const SOON_MS = 10_000;

async function soon<T>(work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const result = await work();
  assert.ok(performance.now() - started < SOON_MS, `took ${performance.now() - started} ms`);
  return result;
}

async function failure(work: Promise<unknown>, code: string): Promise<string> {
  const error = await work.then(() => assert.fail('expected a failure'), (error: unknown) => error);
  assert.ok(error instanceof WorkspaceError, String(error));
  assert.equal(error.code, code, error.message);
  return error.message;
}

/** A command on an engine that answers from a record. */
async function recorded(record: Record_, options: Partial<SubprocessSandboxOptions> = {}): Promise<{ result: SandboxResult; calls: string[] }> {
  const engine = await fakeEngine(record);
  const scratch = mkdtempSync(join(tmpdir(), 'croft-docker-'));
  const sandbox = new SubprocessSandbox({ image: IMAGE, socketPath: engine.socketPath, ...options });
  try {
    const result = await new SandboxShell(sandbox, { cwd: scratch }).exec('true', { timeoutMs: SOON_MS });
    return { result, calls: engine.calls };
  } finally {
    await sandbox.close();
    await engine.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function withBroker<T>(options: CredentialBrokerOptions, use: (sandbox: Partial<SubprocessSandboxOptions>) => Promise<T>, allow: string[] = []): Promise<T> {
  const broker = await createCredentialBroker(options);
  try {
    return await use({ broker, network: { allow } });
  } finally {
    await broker.close();
  }
}

/** A service of the host on every address; counts who came. */
async function hostService<T>(use: (port: number, visits: () => number) => Promise<T>): Promise<T> {
  let visits = 0;
  const server = createServer((socket) => {
    visits += 1;
    socket.on('error', () => {}).end('HTTP/1.0 200 OK\r\n\r\nhost service');
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  try {
    return await use((server.address() as { port: number }).port, () => visits);
  } finally {
    server.close();
  }
}

function hostAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flat();
  return all.filter((one) => one?.family === 'IPv4' && !one.internal).map((one) => one?.address ?? '');
}

/** Status and body of one request through the proxy, spoken by hand. */
function proxied(request: string): string {
  return `printf '${request}' | nc -w 5 127.0.0.1 3128`;
}

export const CASES: Record<string, () => Promise<void>> = {
  'DLIFE-01': async () => {
    const labels = uniqueLabel();
    const mark = uniqueSeconds();
    await withSandbox(async ({ shell, labels: own }) => {
      const controller = new AbortController();
      const live = shell.exec('sleep 300', { timeoutMs: 300_000, signal: controller.signal });
      await eventually('the live one runs', async () => (await containersOf(own)).length === 1);
      const script = `
        import { SubprocessSandbox } from 'croft';
        const sandbox = new SubprocessSandbox({ image: ${JSON.stringify(IMAGE)}, labels: ${JSON.stringify(labels)} });
        await sandbox.run({ command: 'sleep', args: ['${mark}'], cwd: process.argv[1], timeoutMs: 600_000 });`;
      const scratch = mkdtempSync(join(tmpdir(), 'croft-docker-'));
      const child = spawn(process.execPath, ['--input-type=module', '--eval', script, scratch], { cwd: PACKAGE, stdio: 'inherit' });
      await eventually('the command runs', () => alive(mark) >= 1, 30_000);
      child.kill('SIGKILL');
      await eventually('its container is gone', async () => (await containersOf(labels)).length === 0, 15_000);
      assert.equal(alive(mark), 0);
      rmSync(scratch, { recursive: true });
      assert.equal((await containersOf(own)).length, 1, 'the live owner keeps its container');
      controller.abort();
      assert.equal((await live).aborted, true, 'the live command ran until now');
    });
  },

  'DLIFE-05': async () => {
    await withSandbox(async ({ shell }) => {
      for (let round = 0; round < 25; round++) {
        const results = await Promise.all(Array.from({ length: 4 }, () => shell.exec('echo early; echo late >&2', { timeoutMs: 60_000 })));
        for (const { stdout, stderr } of results) assert.deepEqual([stdout, stderr], ['early\n', 'late\n']);
      }
    });
    // The order of calls where the engine carries the output.
    for (let round = 0; round < 10; round++) {
      const { stdout, stderr } = await run('echo early; echo late >&2', {}, { transport: 'attach' });
      assert.deepEqual([stdout, stderr], ['early\n', 'late\n']);
    }
  },

  'DLIFE-06': async () => {
    for (const transport of ['socket', 'attach'] as const) {
      const { stdout, exitCode } = await run('echo x; exit 7', {}, { transport });
      assert.deepEqual([stdout, exitCode], ['x\n', 7]);
    }
  },

  'DLIFE-07': async () => {
    const record = { output: frame(1, 'all of it\n'), staysOpen: true, exitCode: 3 };
    const { result } = await soon(() => recorded(record, { transport: 'attach' }));
    assert.deepEqual([result.stdout, result.exitCode], ['all of it\n', 3]);
  },

  'DLIFE-08': async () => {
    for (const transport of ['socket', 'attach'] as const) assert.equal((await run('sleep 1; exit 9', {}, { transport })).exitCode, 9);
  },

  'DLIFE-10': async () => {
    for (const transport of ['socket', 'attach'] as const) {
      const result = await soon(() => run('echo a; echo b >&2; sleep 30', { timeoutMs: 1500 }, { transport }));
      assert.deepEqual([result.timedOut, result.stdout, result.stderr], [true, 'a\n', 'b\n']);
    }
  },

  'DLIFE-11': async () => {
    for (const transport of ['socket', 'attach'] as const) {
      const controller = new AbortController();
      await withSandbox(async ({ shell, labels }) => {
        const call = shell.exec('echo up; sleep 60', { timeoutMs: 120_000, signal: controller.signal, onOutput: () => controller.abort() });
        const result = await soon(() => call);
        assert.deepEqual([result.aborted, result.stdout], [true, 'up\n']);
        await eventually('the container is gone', async () => (await containersOf(labels)).length === 0);
      }, { transport });
    }
  },

  'DLIFE-12': async () => {
    const mark = uniqueSeconds();
    const line = `setsid sleep ${mark} & setsid sh -c 'trap "" TERM HUP; sleep ${mark}' & sleep ${mark}`;
    await withSandbox(async ({ shell }) => {
      const result = await shell.exec(line, { timeoutMs: 1500 });
      assert.equal(result.timedOut, true);
      await eventually('nothing of it is alive', () => alive(mark) === 0);
    });
  },

  'DLIFE-14': async () => {
    await withSandbox(async ({ shell, labels }) => {
      const call = shell.exec('sleep 60', { timeoutMs: 120_000 });
      await eventually('it runs', async () => (await containersOf(labels))[0]?.State === 'running');
      const [{ Id: id }] = await containersOf(labels);
      const removed = await Promise.all(Array.from({ length: 3 }, () => api('DELETE', `/containers/${id}?force=1`)));
      for (const { status } of removed) assert.ok([204, 404, 409].includes(status), String(status));
      const result = await soon(() => call);
      assert.notEqual(result.exitCode, 0);
      assert.match(result.note ?? '', /ended from outside/);
      assert.equal((await shell.exec('echo next', { timeoutMs: 60_000 })).stdout, 'next\n');
    });
  },

  'DLIFE-15': async () => {
    for (const transport of ['socket', 'attach'] as const) assert.equal((await run('true', {}, { transport })).exitCode, 0);
  },

  'DLIFE-16': async () => {
    const { stdout } = await run('i=0; while [ $i -lt 50 ]; do (sleep 0.01 &) ; i=$((i+1)); done; sleep 1; ps -o stat | grep -c Z');
    assert.equal(stdout, '0\n');
  },

  'DIO-01': async () => {
    const record = { output: Buffer.from('out\r\nerr\r\n'), contentType: 'application/vnd.docker.raw-stream' };
    const { result } = await recorded(record, { transport: 'attach' });
    assert.equal(result.stdout, 'out\r\nerr\r\n');
  },

  'DIO-02': async () => {
    const output = Buffer.concat([frame(1, 'one\n'), frame(2, 'zwei €\n'), frame(1, ''), frame(1, Buffer.from([1, 0, 0, 0])), frame(2, 'end')]);
    const whole = await recorded({ output }, { transport: 'attach' });
    const torn = await recorded({ output, pieceBytes: 1 }, { transport: 'attach' });
    const text = ({ result }: { result: SandboxResult }): string[] => [result.stdout, result.stderr];
    assert.deepEqual(text(torn), text(whole));
    assert.deepEqual(text(whole), ['one\n\x01\0\0\0', 'zwei €\nend']);
  },

  'DIO-04': async () => {
    const line = 'i=0; while [ $i -lt 20000 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done';
    const lines = (word: string): string => Array.from({ length: 20_000 }, (_, i) => `${word}${i}\n`).join('');
    for (const transport of ['socket', 'attach'] as const) {
      const { stdout, stderr } = await run(line, { maxOutputBytes: 1_000_000 }, { transport });
      assert.equal(stdout.length, 168_890);
      assert.ok(stdout === lines('out') && stderr === lines('err'));
    }
  },

  'DIO-05': async () => {
    await withSandbox(async ({ shell, labels }) => {
      let looked = false;
      const result = await soon(() => shell.exec('yes | head -c 2000000; sleep 1', { maxOutputBytes: 3_000_000, timeoutMs: 60_000, onOutput: () => void check() }));
      assert.equal(result.stdout.length, 2_000_000);
      async function check(): Promise<void> {
        if (looked) return;
        looked = true;
        const [{ Id: id }] = await containersOf(labels);
        const { body } = await api('GET', `/containers/${id}/json`);
        assert.equal(body.HostConfig.LogConfig.Type, 'none');
      }
    });
  },

  'DFS-01': async () => await sameInside('with:colon'),

  'DFS-02': async () => {
    for (const name of ['with space', 'with,comma', 'quo"te\'s', 'ünï-日本', 'new\nline', '$(x)`y`']) await sameInside(name);
  },

  'DFS-03': async () => {
    await withSandbox(async ({ sandbox, root }) => {
      const cwd = join(root, 'missing');
      await failure(sandbox.run({ command: 'true', cwd }), 'NOT_FOUND');
      assert.ok(!existsSync(cwd));
    });
  },

  'DFS-04': async () => {
    await withSandbox(
      async ({ root, shell }) => {
        chownSync(root, 1234, 1234);
        writeFileSync(join(root, 'secret'), 'mine', { mode: 0o600 });
        chownSync(join(root, 'secret'), 1234, 1234);
        const { stdout, stderr } = await shell.exec('touch made; cat secret; echo more >> secret; touch "$HOME/x" /tmp/y && echo " ok"', { timeoutMs: 60_000 });
        assert.deepEqual([stdout, stderr], ['mine ok\n', '']);
        const { uid, gid } = statSync(join(root, 'made'));
        assert.deepEqual([uid, gid], [1234, 1234]);
      },
      { user: '1234:1234' },
    );
    const { stdout } = await run('id -u; touch made "$HOME/x" /tmp/y && echo ok', {}, { user: 'host' });
    assert.equal(stdout, `${process.getuid?.()}\nok\n`);
  },

  'DFS-08': async () => {
    await withSandbox(async ({ root, sandbox }) => {
      mkdirSync(join(root, 'plain'));
      writeFileSync(join(root, 'plain', 'f'), 'here');
      symlinkSync('plain', join(root, 'link'));
      symlinkSync('/etc', join(root, 'trap'));
      const cwd = join(root, 'link');
      const { stdout } = await sandbox.run({ command: 'sh', args: ['-c', 'pwd; cat f'], cwd });
      assert.equal(stdout, `${cwd}\nhere`);
      await failure(sandbox.run({ command: 'true', cwd: join(root, 'trap') }), 'INVALID_ARGUMENT');
    });
  },

  'DFS-09': async () => {
    await withSandbox(async ({ sandbox, labels }) => {
      const home = process.env['HOME'] ?? '/root';
      for (const cwd of ['/', '/etc', '/proc', '/var/run', '/home', home, '/var/lib/docker', '/etc/', '/usr/../etc']) {
        await failure(sandbox.run({ command: 'true', cwd }), 'INVALID_ARGUMENT');
      }
      assert.deepEqual(await containersOf(labels), []);
    });
  },

  'DNET-01': async () => {
    const name = `leak-${process.pid}-${Date.now()}.example.com`;
    for (const egress of ['socket', 'network'] as const) {
      await withBroker({ rules: {} }, async (network) => {
        const leaked = await sniffed(name, async () => {
          const { stdout, stderr } = await run(`nslookup ${name}; nslookup ${name} 8.8.8.8; nslookup ${name} $NO_PROXY`, { timeoutMs: 40_000 }, { ...network, egress });
          assert.doesNotMatch(stdout + stderr, /Address.*\d+\.\d+\.\d+\.\d+\n.*Name:/);
        });
        assert.equal(leaked, 0, egress);
      }, ['other.example']);
    }
  },

  'DNET-03': async () => {
    await hostService(async (port, visits) => {
      await withBroker({ rules: {} }, async (network) => {
        const hosts = [...hostAddresses(), '172.17.0.1', '172.18.0.1', '127.0.0.1', '169.254.169.254'];
        const line = hosts.map((host) => `nc -w 2 ${host} ${port} </dev/null && echo reached ${host}`).join('; ');
        const { stdout } = await run(line, { timeoutMs: 60_000 }, network);
        assert.equal(stdout, '');
        assert.equal(visits(), 0);
      }, ['other.example']);
    });
  },

  'DNET-04': async () => {
    await withBroker({ rules: {} }, async (network) => {
      const session = async (egress: 'socket' | 'network'): Promise<void> => {
        const { stdout } = await run('echo $HTTP_PROXY', { timeoutMs: 60_000 }, { ...network, egress });
        assert.match(stdout, /^http:/);
      };
      // Each with its own network, one after the other: an address pool that leaked would be used up.
      for (let i = 0; i < 40; i++) await session('network');
      await Promise.all(Array.from({ length: 4 }, () => session('socket')));
      // More at once than the engine has subnets for.
      const labels = uniqueLabel();
      const scratch = mkdtempSync(join(tmpdir(), 'croft-docker-'));
      const sandboxes = Array.from({ length: 35 }, (_, i) => new SubprocessSandbox({ image: IMAGE, labels, ...network, egress: i < 33 ? 'network' : 'socket' }));
      try {
        const results = await Promise.allSettled(inSteps(sandboxes, 6, (sandbox) => sandbox.run({ command: 'true', cwd: scratch })));
        assert.deepEqual(results.filter(({ status }) => status === 'rejected'), []);
        assert.equal((await networksOf(labels)).length, 33);
      } finally {
        await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
        rmSync(scratch, { recursive: true });
      }
      assert.deepEqual([await networksOf(labels), await containersOf(labels)], [[], []]);
    }, ['other.example']);
  },

  'DNET-06': async () => {
    const { stdout, stderr } = await run('ip -o link | cut -d: -f2; nslookup example.com', { timeoutMs: 60_000 });
    assert.match(stdout, /^ lo\n(?! )/);
    assert.match(stdout + stderr, /unreachable|no servers could be reached|can't resolve|timed out|NXDOMAIN|bad address/i);
    assert.doesNotMatch(stdout, /eth\d/);
  },

  'DNET-08': async () => {
    await upstreamBroker('allowed.example', async (network, port) => {
      const line = `wget -q -O- http://allowed.example:${port}/; nc -w 2 ${hostAddresses()[0] ?? '127.0.0.1'} ${port} </dev/null && echo direct`;
      const { stdout } = await run(line, { timeoutMs: 60_000 }, { ...network, user: '1234:1234', readOnlyRoot: true });
      assert.equal(stdout, 'hello with Bearer t0ken\n');
    });
  },

  'DSEC-01': async () => {
    const line = 'grep -E "Cap(Eff|Bnd)|NoNewPrivs|Seccomp:" /proc/self/status; touch /x; unshare -U true; mount -t tmpfs t /mnt; ulimit -c';
    await withSandbox(
      async ({ shell, labels }) => {
        let inspected: any;
        const look = async (): Promise<void> => {
          const [container] = await containersOf(labels);
          if (container) inspected ??= (await api('GET', `/containers/${container.Id}/json`)).body;
        };
        const { stdout, stderr } = await shell.exec(`${line}; sleep 1`, { timeoutMs: 60_000, onOutput: () => void look() });
        const field = (name: string): string | undefined => new RegExp(`^${name}:\\s*(\\S+)$`, 'm').exec(stdout)?.[1];
        assert.deepEqual(['CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp'].map(field), ['0000000000000000', '0000000000000000', '1', '2']);
        assert.ok(stdout.endsWith('\n0\n'), 'no core dumps');
        for (const refusal of [/touch: \/x: Read-only/, /unshare.*not permitted/, /mount: permission denied/]) assert.match(stderr, refusal);
        const { Privileged, PidMode, UsernsMode, IpcMode, NetworkMode, PidsLimit, Binds, UTSMode } = inspected.HostConfig;
        assert.deepEqual([Privileged, PidMode, UsernsMode, UTSMode, IpcMode, NetworkMode, PidsLimit, Binds], [false, '', '', '', 'private', 'none', 512, null]);
      },
      // Without it the image's own tree is writable for its owner, as in any container; see docs/limits.md.
      { readOnlyRoot: true },
    );
  },

  'DSEC-02': async () => {
    const sockets = ['/var/run/docker.sock', '/run/docker.sock', '/run/containerd/containerd.sock', '/run/podman/podman.sock', '/run/libvirt/libvirt-sock'];
    const line = sockets.map((path) => `curl -s -m 2 --unix-socket ${path} http://d/info && echo reached`).join('; ');
    const { stdout } = await run(`${line}; true`, { timeoutMs: 60_000 }, { image: TOOLS });
    assert.equal(stdout, '');
    await withSandbox(async ({ sandbox }) => {
      for (const cwd of ['/var/run', '/run', '/var']) await failure(sandbox.run({ command: 'true', cwd }), 'INVALID_ARGUMENT');
    });
  },

  'DSEC-03': async () => {
    const result = await run('i=0; while [ $i -lt 500 ]; do sleep 5 & i=$((i+1)); done', { timeoutMs: 60_000 }, { pidsLimit: 64 });
    assert.match(result.stderr, /can't fork/);
    assert.notEqual(result.exitCode, 0);
    assert.match(result.hint ?? '', /process limit \(pidsLimit: 64\), not a memory limit/);
  },

  'DSEC-04': async () => {
    for (const transport of ['socket', 'attach'] as const) {
      const hog = await run('tail /dev/zero', { timeoutMs: 60_000 }, { memory: '20m', transport });
      assert.deepEqual([hog.oomKilled, hog.exitCode, hog.timedOut], [true, 137, false], transport);
      assert.match(hog.hint ?? '', /memory limit \(memory: 20971520 bytes\)/);
    }
    const slow = await run('sleep 60', { timeoutMs: 1000 }, { memory: '20m' });
    assert.deepEqual([slow.timedOut, slow.oomKilled ?? false], [true, false]);
  },

  'DERR-01': async () => {
    const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'croft-docker-')));
    const dead = join(scratch, 'dead.sock');
    const script = `import socket,sys;socket.socket(socket.AF_UNIX).bind(sys.argv[1])`;
    assert.equal(spawnSync('python3', ['-c', script, dead]).status, 0);
    const told = async (options: Partial<SubprocessSandboxOptions>): Promise<string> => {
      const sandbox = new SubprocessSandbox({ image: IMAGE, ...options });
      const started = performance.now();
      const message = await failure(sandbox.run({ command: 'true', cwd: scratch }), 'SANDBOX_UNAVAILABLE');
      assert.ok(performance.now() - started < 5000);
      await sandbox.close();
      return message;
    };
    assert.match(await told({ socketPath: join(scratch, 'none.sock') }), /does not exist.*Start Docker/);
    assert.match(await told({ socketPath: dead }), /not running.*Start it/);
    const saved = process.env['DOCKER_HOST'];
    process.env['DOCKER_HOST'] = 'tcp://127.0.0.1:1';
    try {
      assert.match(await told({}), /tcp:\/\/127\.0\.0\.1:1 .*refused the connection/);
      process.env['DOCKER_HOST'] = 'ssh://me@there';
      assert.match(await told({}), /not on this machine/);
    } finally {
      if (saved === undefined) delete process.env['DOCKER_HOST'];
      else process.env['DOCKER_HOST'] = saved;
    }
    if (process.getuid?.() === 0) {
      const locked = await fakeEngine({});
      const script = `
        import { SubprocessSandbox } from 'croft';
        const sandbox = new SubprocessSandbox({ image: 'x', socketPath: process.argv[1] });
        await sandbox.run({ command: 'true', cwd: '/tmp/x' }).catch((error) => console.log(error.code, error.message));`;
      // The socket's folder is root's alone, as /var/run/docker.sock is the docker group's.
      const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', script, locked.socketPath], { cwd: PACKAGE, uid: 65534, gid: 65534, encoding: 'utf8' });
      assert.match(stdout, /^SANDBOX_UNAVAILABLE .*no permission.*docker group/);
      await locked.close();
    }
    rmSync(scratch, { recursive: true });
  },

  'DERR-02': async () => {
    await withSandbox(
      async ({ shell }) => {
        const message = await failure(shell.exec('true'), 'SANDBOX_UNAVAILABLE');
        assert.match(message, /"nosuch\/image:1" is not on this machine.*docker pull nosuch\/image:1/);
      },
      { image: 'nosuch/image:1' },
    );
  },

  'DERR-03': async () => {
    const home = mkdtempSync(join(tmpdir(), 'croft-home-'));
    const scratch = mkdtempSync(join(tmpdir(), 'croft-docker-'));
    const engines = { host: await fakeEngine({}), context: await fakeEngine({}), known: await fakeEngine({}) };
    mkdirSync(join(home, '.docker', 'run'), { recursive: true });
    mkdirSync(join(home, '.colima', 'default'), { recursive: true });
    symlinkSync(engines.known.socketPath, join(home, '.colima', 'default', 'docker.sock'));
    const context = async (name: string): Promise<void> => {
      const { createHash } = await import('node:crypto');
      const folder = join(home, '.docker', 'contexts', 'meta', createHash('sha256').update(name).digest('hex'));
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, 'meta.json'), JSON.stringify({ Name: name, Endpoints: { docker: { Host: `unix://${engines.context.socketPath}` } } }));
      writeFileSync(join(home, '.docker', 'config.json'), JSON.stringify({ currentContext: name }));
    };
    const used = async (env: Record<string, string>): Promise<string> => {
      const before = Object.fromEntries(Object.entries(engines).map(([name, { calls }]) => [name, calls.length]));
      const script = `
        import { SubprocessSandbox } from 'croft';
        const sandbox = new SubprocessSandbox({ image: 'x', transport: 'attach' });
        await sandbox.run({ command: 'true', cwd: process.argv[1] }).catch(() => {});
        await sandbox.close();`;
      const child = spawn(process.execPath, ['--input-type=module', '--eval', script, scratch], { cwd: PACKAGE, env: { PATH: process.env['PATH'], HOME: home, ...env } });
      await new Promise((resolve) => child.on('exit', resolve));
      return Object.entries(engines).filter(([name, { calls }]) => calls.length > (before[name] ?? 0)).map(([name]) => name).join();
    };
    try {
      assert.equal(await used({}), 'known');
      await context('work');
      assert.equal(await used({}), 'context');
      assert.equal(await used({ DOCKER_HOST: `unix://${engines.host.socketPath}` }), 'host');
      assert.equal(await used({ DOCKER_CONTEXT: 'default' }), 'known');
    } finally {
      await Promise.all(Object.values(engines).map((engine) => engine.close()));
      rmSync(home, { recursive: true });
      rmSync(scratch, { recursive: true });
    }
  },

  'DERR-05': async () => {
    for (const transport of ['socket', 'attach'] as const) {
      await withSandbox(async ({ sandbox, root }) => {
        const message = await failure(sandbox.run({ command: '/bin/bash', args: ['-c', 'true'], cwd: root }), 'SPAWN_FAILED');
        assert.match(message, /the image "busybox:latest" has no "\/bin\/bash" \(exit code 127\)/);
        assert.doesNotMatch(message, /OCI/);
      }, { transport });
    }
  },

  'DERR-07': async () => {
    const engines: [string, Record_][] = [
      ['Docker Desktop', { version: { Platform: { Name: 'Docker Desktop 4.32.0 (157355)' } } }],
      ['Docker Desktop', { info: { OperatingSystem: 'Docker Desktop', Name: 'docker-desktop', KernelVersion: '6.6.31-linuxkit' } }],
      ['colima', { info: { OperatingSystem: 'Ubuntu 24.04 LTS', Name: 'colima' } }],
      ['rootless', { info: { SecurityOptions: ['name=seccomp,profile=builtin', 'name=rootless', 'name=cgroupns'] } }],
      ['25.0.5', { version: { Version: '24.0.7' } }],
    ];
    for (const [cause, record] of engines) {
      await withBroker({ rules: {} }, async (network) => {
        for (const egress of [undefined, 'network', 'socket'] as const) {
          const engine = await fakeEngine(record);
          const sandbox = new SubprocessSandbox({ image: IMAGE, socketPath: engine.socketPath, ...network, ...(egress && { egress }) });
          const message = await failure(sandbox.run({ command: 'true', cwd: PACKAGE.replace(/\/$/, '') }), 'LOUSHO_SANDBOX_EGRESS_UNSUPPORTED');
          assert.ok(message.includes(cause), message);
          assert.deepEqual(engine.calls.filter((call) => call.includes('/containers/create')), []);
          await sandbox.close();
          await engine.close();
        }
      }, ['allowed.example']);
    }
    // In a virtual machine no socket can be shared: the engine carries the output.
    const desktop = { info: { OperatingSystem: 'Docker Desktop' }, output: frame(1, 'from a machine\n') };
    const { result, calls } = await recorded(desktop);
    assert.equal(result.stdout, 'from a machine\n');
    const id = 'f'.repeat(64);
    const order = calls.filter((call) => call.includes('/containers/') && !call.includes('/json'));
    assert.deepEqual(order, ['POST /containers/create', `POST /containers/${id}/attach`, `POST /containers/${id}/start`, `POST /containers/${id}/wait`, `DELETE /containers/${id}`]);
  },

  'EGRESS-01': async () => {
    const answers: Record<string, string> = { 'a.evil.example': '169.254.169.254', 'b.evil.example': '127.0.0.1', 'c.evil.example': '10.0.0.5', 'd.evil.example': '::1', 'e.evil.example': '::ffff:10.0.0.5' };
    const asked: string[] = [];
    const resolve = (host: string): string[] => {
      asked.push(host);
      return [answers[host] ?? ''];
    };
    await withBroker({ rules: {}, resolve }, async (network) => {
      const line = Object.keys(answers).map((host) => `curl -s -m 5 -o /dev/null -w '%{http_code}\\n' http://${host}/`).join('; ');
      const { stdout } = await run(line, { timeoutMs: 60_000 }, { ...network, image: TOOLS });
      assert.deepEqual(stdout.trim().split('\n'), Object.keys(answers).map(() => '403'));
      assert.deepEqual(asked.sort(), Object.keys(answers), 'each name is resolved once');
    }, ['*.evil.example']);
  },

  'EGRESS-03': async () => {
    await upstreamBroker('*.ubuntu.com', async (network, port) => {
      const hosts = ['notubuntu.com', 'ubuntu.com.evil.com', 'ubuntu.com', 'A.UBUNTU.COM.', 'a.ubuntu.com'];
      const line = hosts.map((host) => `curl -s -m 5 -o /dev/null -w '%{http_code}\\n' http://${host}:${port}/`).join('; ');
      const { stdout } = await run(line, { timeoutMs: 60_000 }, { ...network, image: TOOLS });
      assert.deepEqual(stdout.trim().split('\n'), ['403', '403', '403', '200', '200']);
    });
  },

  'EGRESS-04': async () => {
    const asked: string[] = [];
    const resolve = (host: string): string[] => {
      asked.push(host);
      return ['127.0.0.1'];
    };
    await withBroker({ rules: {}, resolve }, async (network) => {
      const hosts = ['evil.com\\0.github.com', 'evil.com%%00.github.com', 'evil.com .github.com', 'me@evil.github.com', 'evil.com\\r.github.com', 'evil.com\\tx.github.com'];
      const line = hosts.map((host) => `${proxied(`CONNECT ${host}:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n`)} | head -n 1`).join('; ');
      const { stdout } = await run(line, { timeoutMs: 60_000 }, network);
      const statuses = stdout.trim().split('\n');
      assert.equal(statuses.length, hosts.length, stdout);
      for (const status of statuses) assert.match(status, /^HTTP\/1\.1 40[03] /);
      assert.deepEqual(asked, []);
    }, ['*.github.com']);
  },

  'EGRESS-07': async () => {
    await withBroker({ rules: {}, resolve: () => ['127.0.0.1'], allowPrivate: ['example.com'] }, async (network) => {
      const line = [22, 25, 6379].map((port) => `${proxied(`CONNECT example.com:${port} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n`)} | head -n 1`).join('; ');
      const { stdout } = await run(line, { timeoutMs: 60_000 }, network);
      const statuses = stdout.trim().split('\n');
      assert.equal(statuses.length, 3);
      for (const status of statuses) assert.match(status, /^HTTP\/1\.1 403 /);
    }, ['example.com']);
  },
};

async function sameInside(name: string): Promise<void> {
  await withSandbox(
    async ({ root, shell }) => {
      writeFileSync(join(root, 'f'), 'content');
      const { stdout } = await shell.exec('cat f; pwd', { timeoutMs: 60_000 });
      assert.equal(stdout, `content${root}\n`);
    },
    {},
    name,
  );
}

/** A broker with one rule host, whose name leads to an upstream of this test. */
export async function upstreamBroker<T>(host: string, use: (network: Partial<SubprocessSandboxOptions>, port: number) => Promise<T>, privately: string[] = []): Promise<T> {
  const { createServer } = await import('node:http');
  const upstream = createServer((request, response) => response.end(`hello with ${request.headers.authorization}\n`));
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const { port } = upstream.address() as { port: number };
  const options = {
    rules: { [host]: { headers: { authorization: () => 'Bearer t0ken' }, ports: [port] } },
    allowPrivate: ['127.0.0.1', ...privately],
    resolve: () => ['127.0.0.1'],
  };
  try {
    return await withBroker(options, async (network) => await use(network, port));
  } finally {
    upstream.closeAllConnections();
    upstream.close();
  }
}

/** Starts `work` for all, `width` at a time. */
function inSteps<T, R>(items: T[], width: number, work: (item: T) => Promise<R>): Promise<R>[] {
  const lanes: Promise<unknown>[] = Array.from({ length: width }, () => Promise.resolve());
  return items.map((item, i) => {
    const done = (lanes[i % width] ?? Promise.resolve()).then(() => work(item));
    lanes[i % width] = done.catch(() => {});
    return done;
  });
}

/** How many packets with a DNS name left the host during `work`: what stays between a container and its bridge is none. */
async function sniffed(name: string, work: () => Promise<void>): Promise<number> {
  if (process.getuid?.() !== 0) {
    await work();
    return 0;
  }
  const script = `
import select, socket, sys
label = sys.argv[1].split('.')[0].encode()
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
print('up', flush=True)
count = 0
while True:
    ready, _, _ = select.select([s, sys.stdin], [], [])
    if s in ready:
        packet, where = s.recvfrom(65535)
        if label in packet and not where[0].startswith(('br-', 'veth', 'docker', 'lo')): count += 1
    if sys.stdin in ready: break
print(count)`;
  const sniffer = spawn('python3', ['-c', script, name], { stdio: ['pipe', 'pipe', 'inherit'] });
  let text = '';
  sniffer.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  await eventually('the sniffer is up', () => text.startsWith('up'));
  await work();
  sniffer.stdin.end();
  await new Promise((resolve) => sniffer.on('exit', resolve));
  return Number(text.split('\n')[1]);
}
