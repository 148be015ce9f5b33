/** The in-memory workspace for tests: the same tree rules, a shell you program. */
import { NativeTree } from '#native';
import { z } from 'zod';
import { callSync, throwIfAborted } from './call.js';
import { checkContent, checkOptions, checkString } from './check.js';
import { TreeFiles } from './files.js';
import { limitsSchema } from './limits.js';
import { policyFields, policyJson, surroundings } from './policy.js';
import type * as api from './providers.js';

const optionsSchema = z.strictObject({
  files: z.record(z.string(), z.union([z.string(), z.instanceof(Uint8Array)])).optional(),
  exec: z.custom<NonNullable<api.MemoryWorkspaceOptions['exec']>>((value) => typeof value === 'function', 'expected a function').optional(),
  protect: z.array(z.string()).optional(),
  ...policyFields,
  limits: limitsSchema.optional(),
});

const NO_SHELL = { exitCode: 127, stderr: 'MemoryWorkspace runs no commands: pass `exec` to answer them\n' };

export class MemoryWorkspace extends TreeFiles implements api.Workspace {
  readonly commands: api.MemoryCommand[] = [];
  readonly #exec: NonNullable<api.MemoryWorkspaceOptions['exec']>;

  constructor(options: api.MemoryWorkspaceOptions = {}) {
    const checked = checkOptions('MemoryWorkspace', optionsSchema, options);
    super(callSync(() => NativeTree.memory(checked.protect ?? null, policyJson(checked))), checked.limits);
    this.#exec = checked.exec ?? (() => NO_SHELL);
    for (const [path, content] of Object.entries(checked.files ?? {})) this.#put(path, content);
  }

  snapshot(): Record<string, string | Buffer> {
    const files = this.tree.snapshot().map(({ path, content }) => [path, textOrBytes(content)] as const);
    return Object.fromEntries(files);
  }

  async exec(command: string | string[], options: api.ExecOptions = {}): Promise<api.ExecResult> {
    const cwd = options.cwd ?? '.';
    this.checkOpen(cwd);
    this.policy.checkCommand(command, cwd);
    throwIfAborted(options.signal);
    const line = Array.isArray(command) ? command.join(' ') : command;
    checkString('command', line);
    const { env = {}, timeoutMs } = options;
    this.commands.push({ command: line, cwd, env, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    const answer = await this.#exec(line, options);
    return { stdout: '', stderr: '', exitCode: 0, timedOut: false, truncated: false, droppedBytes: 0, durationMs: 0, ...answer };
  }

  instructions(): string {
    const paths = this.tree.snapshot().map(({ path }) => path);
    const exists = (wanted: string): boolean => paths.some((path) => path === wanted || path.startsWith(`${wanted}/`));
    return this.policy.instructions(surroundings(exists, { venv: true, background: false, linksDenied: false }));
  }

  async close(): Promise<void> {
    this.markClosed();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #put(path: string, content: string | Uint8Array): void {
    checkString('files: path', path);
    checkContent(`files: ${path}`, content);
    callSync(() => this.tree.insert(path, content));
  }
}

function textOrBytes(content: Buffer): string | Buffer {
  const text = content.toString('utf8');
  return Buffer.from(text, 'utf8').equals(content) ? text : content;
}
