/** The adapter that is none: commands run on the host, by the same engine as a workspace's. */
import { NativeTree } from '#native';
import { relative } from 'node:path';
import { callSync } from '../call.js';
import { WorkspaceClosedError } from '../errors.js';
import { Commands } from '../process.js';
import type * as api from '../providers.js';
import { checkProgram, checkRun, DEFAULT_TIMEOUT_MS, sandboxExit, sandboxProcess } from './adapter.js';

export class NoopSandbox implements api.SandboxAdapter, AsyncDisposable {
  readonly kind = 'host';
  readonly #running = new Set<Commands>();
  #closed = false;

  async run(options: api.SandboxRunOptions): Promise<api.SandboxResult> {
    const { command, root, cwd, env, input, timeoutMs, maxOutputBytes } = checkRun(options, DEFAULT_TIMEOUT_MS);
    const commands = this.#open(root, env);
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
      await this.#end(commands);
    }
  }

  async spawn(options: api.SandboxSpawnOptions): Promise<api.SandboxProcess> {
    const { command, root, cwd, env } = checkProgram(options);
    const commands = this.#open(root, env);
    let onExit: (exit: api.SandboxExit) => void = () => {};
    const exited = new Promise<api.SandboxExit>((resolve) => (onExit = resolve));
    try {
      const native = await commands.attend(command, relative(root, cwd) || '.', options, (exit) => void this.#end(commands).finally(() => onExit(sandboxExit(exit))));
      return sandboxProcess(native, exited);
    } catch (error) {
      await this.#end(commands);
      throw error;
    }
  }

  #open(root: string, env: Record<string, string>): Commands {
    if (this.#closed) throw new WorkspaceClosedError('the sandbox is closed: create a new one');
    const tree = callSync(() => NativeTree.disk({ root }));
    const commands = new Commands(tree, { env });
    this.#running.add(commands);
    return commands;
  }

  async #end(commands: Commands): Promise<void> {
    this.#running.delete(commands);
    await commands.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#running].map((commands) => commands.close()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
