/** The adapter that is none: commands run on the host, by the same engine as a workspace's. */
import { NativeTree } from '#native';
import { relative } from 'node:path';
import { callSync } from '../call.js';
import { WorkspaceClosedError } from '../errors.js';
import { Commands } from '../process.js';
import type * as api from '../providers.js';
import { checkRun, DEFAULT_TIMEOUT_MS } from './adapter.js';

export class NoopSandbox implements api.SandboxAdapter, AsyncDisposable {
  readonly kind = 'host';
  readonly #running = new Set<Commands>();
  #closed = false;

  async run(options: api.SandboxRunOptions): Promise<api.SandboxResult> {
    if (this.#closed) throw new WorkspaceClosedError('the sandbox is closed: create a new one');
    const { command, root, cwd, env, input, timeoutMs, maxOutputBytes } = checkRun(options, DEFAULT_TIMEOUT_MS);
    const commands = new Commands(
      callSync(() => NativeTree.disk({ root })),
      { env },
    );
    this.#running.add(commands);
    try {
      return await commands.exec(command, {
        cwd: relative(root, cwd) || '.',
        timeoutMs,
        maxOutputBytes,
        ...(input !== undefined && { input }),
        ...(options.signal && { signal: options.signal }),
        ...(options.onOutput && { onOutput: options.onOutput }),
      });
    } finally {
      this.#running.delete(commands);
      await commands.close();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#running].map((commands) => commands.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
