// One suite over every adapter: the host, and containers per command, from the pool, per session, and through attach.
import { after, describe, test } from 'node:test';
import { NoopSandbox, SubprocessSandbox, type SandboxAdapter, type SubprocessSandboxOptions } from 'croft';
import { sandboxCasesFor } from 'croft/testing';
import { IMAGE, withEngine } from './support/docker.js';

function suite(name: string, adapter: SandboxAdapter, options: { skip?: string | false; leftOut?: Record<string, string> } = {}): void {
  describe(name, { skip: options.skip ?? false }, () => {
    after(async () => await adapter.close?.());
    for (const { name, run, needs } of sandboxCasesFor(adapter)) {
      test(name, { timeout: 60_000, skip: options.leftOut?.[name] ?? (needs && options.leftOut?.[needs]) ?? false }, async () => await run(adapter));
    }
  });
}

function container(options: Partial<SubprocessSandboxOptions>): SandboxAdapter {
  return new SubprocessSandbox({ image: IMAGE, ...options });
}

suite('host', new NoopSandbox());
suite('a container per command', container({}), withEngine);
suite('a container from the pool', container({ reuse: 'pool' }), withEngine);
suite('a container per session', container({ reuse: 'session' }), withEngine);
suite('a container through attach', container({ transport: 'attach' }), {
  ...withEngine,
  leftOut: {
    spawn: 'refused there: nothing would end the process when Node is killed',
    'a command killed by a signal is 128 and the number of the signal': 'this engine has no docker-init, and a shell that is the first process ignores its own signals',
  },
});
