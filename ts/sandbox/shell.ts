/** A shell over any sandbox. What the command line and its environment become there is left to `ask`. */
import { isAbsolute, join } from 'node:path';
import { z } from 'zod';
import { checkOptions } from '../check.js';
import { WorkspaceClosedError } from '../errors.js';
import type * as api from '../providers.js';
import { normalizeWorkspacePath } from '../text.js';
import { adapterSchema, checkEnv } from './adapter.js';
import { ask, whatToRun, type Settings } from './ask.js';

const optionsSchema = z.strictObject({
  cwd: z.string().refine(isAbsolute, 'expected an absolute path'),
  env: z.record(z.string(), z.string()).optional(),
  inheritEnv: z.union([z.array(z.string()), z.boolean()]).optional(),
});

export class SandboxShell implements api.ShellProvider, AsyncDisposable {
  readonly #adapter: api.SandboxAdapter;
  readonly #root: string;
  readonly #settings: Settings;
  #closed = false;

  constructor(adapter: api.SandboxAdapter, options: api.SandboxShellOptions) {
    this.#adapter = checkOptions('SandboxShell: adapter', adapterSchema, adapter);
    const { cwd, ...settings } = checkOptions('SandboxShell', optionsSchema, options);
    this.#root = cwd;
    this.#settings = settings;
    checkEnv(settings.env);
  }

  async exec(command: string | string[], options: api.ExecOptions = {}): Promise<api.SandboxResult> {
    if (this.#closed) throw new WorkspaceClosedError('the shell is closed: create a new one');
    const below = normalizeWorkspacePath(options.cwd ?? '.');
    const place = { root: this.#root, cwd: below === '.' ? this.#root : join(this.#root, below) };
    return await ask(this.#adapter, whatToRun(this.#adapter, command, place, options.env, this.#settings), options);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#adapter.close?.();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
