/** Commands of a workspace on this host: options in, results out. What runs them is native. */
import { CancelHandle, NativeCommands, type NativeAdopted, type NativeAttended, type NativeExit, type NativeExecResult, type NativeGitOptions, type NativeTree } from '#native';
import { call, callSync, fromNative } from './call.js';
import { checkContent, checkString, invalid } from './check.js';
import type * as api from './providers.js';

const MAX_OUTPUT_BYTES = 1024 * 1024;
export const MAX_BACKGROUND_CHARS = 30_000;
const KILL_GRACE_MS = 500;
const DEFAULT_SHELL = process.platform === 'win32' ? 'cmd.exe' : '/bin/sh';

type Options = Pick<api.NodeWorkspaceOptions, 'env' | 'inheritEnv' | 'shell' | 'venv'>;

export class Commands {
  readonly #native: NativeCommands;
  readonly #tree: NativeTree;

  constructor(tree: NativeTree, options: Options) {
    this.#tree = tree;
    const env = checkEnv(options.env);
    const inheritEnv = options.inheritEnv ?? [];
    const shell = options.shell ?? DEFAULT_SHELL;
    this.#native = callSync(() => new NativeCommands(tree, { shell, env, inheritEnv, venv: options.venv ?? true }));
  }

  capabilities(): api.WorkspaceCapabilities {
    const resolver = this.#tree.resolver() === 'walk' ? 'walk' : 'openat2';
    return { resolver, containment: this.#native.containment, platform: process.platform };
  }

  /** Resolves for an abort too, once everything the command started is gone. */
  async exec(command: string | string[], options: api.ExecOptions = {}): Promise<api.ExecResult> {
    const { signal } = options;
    const request = execRequest(command, options);
    const onOutput = options.onOutput && guarded(options.onOutput);
    const cancel = signal ? new CancelHandle() : null;
    const onAbort = (): void => cancel?.cancel();
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      return execResult(await this.#native.exec(request, cancel, onOutput));
    } catch (error) {
      throw fromNative(error);
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async spawn(command: string | string[], options: api.SpawnOptions = {}): Promise<api.BackgroundProcess> {
    const request = {
      command: checkCommand(command),
      cwd: checkCwd(options.cwd),
      hostEnv: JSON.stringify(process.env),
      env: checkEnv(options.env),
      killGraceMs: checkNumber('killGraceMs', options.killGraceMs ?? KILL_GRACE_MS),
      maxOutputChars: checkNumber('maxOutputChars', options.maxOutputChars ?? MAX_BACKGROUND_CHARS),
    };
    return await call((cancel) => this.#native.spawn(request, cancel), options.signal);
  }

  /** Runs on under the eyes of the caller, who is told its output and its end. */
  async attend(
    command: string[],
    cwd: string,
    options: Pick<api.SandboxSpawnOptions, 'onOutput' | 'signal'>,
    onExit: (exit: NativeExit) => void,
  ): Promise<NativeAttended> {
    const request = execRequest(command, { cwd, maxOutputBytes: 0 });
    return await call((cancel) => this.#native.attend(request, cancel, guarded(options.onOutput), onExit), options.signal);
  }

  /** Lists a process that runs elsewhere. */
  adopt(pid: number, command: string, maxOutputChars: number): NativeAdopted {
    return callSync(() => this.#native.adopt(pid, command, maxOutputChars));
  }

  /** The real absolute path of a confined directory. */
  async realDirectory(cwd: string | undefined, signal?: AbortSignal): Promise<string> {
    return await call(() => this.#native.realDirectory(checkCwd(cwd)), signal);
  }

  async read(id: string, options: api.CallOptions & { waitMs?: number } = {}): Promise<api.ProcessOutput> {
    checkString('id', id);
    const waitMs = checkNumber('waitMs', options.waitMs ?? 0);
    return await call((cancel) => this.#native.readOutput(id, waitMs, cancel), options.signal);
  }

  async kill(id: string): Promise<api.ProcessOutput> {
    checkString('id', id);
    return await call(() => this.#native.kill(id));
  }

  list(): api.BackgroundProcess[] {
    return callSync(() => this.#native.list());
  }

  statusReminder(): string | undefined {
    return callSync(() => this.#native.statusReminder()) ?? undefined;
  }

  async gitStatus(settings: GitSettings, signal?: AbortSignal): Promise<api.GitStatus> {
    const { branch, ...lists } = await call((cancel) => this.#native.gitStatus(gitOptions(settings), cancel), signal);
    return { branch: branch ?? null, ...lists };
  }

  async gitDiff(path: string | null, staged: boolean, settings: GitSettings, signal?: AbortSignal): Promise<string> {
    if (path !== null) checkString('path', path);
    return await call((cancel) => this.#native.gitDiff(path, staged, gitOptions(settings), cancel), signal);
  }

  async gitCommit(message: string, files: string[] | null, settings: GitSettings, signal?: AbortSignal): Promise<api.GitCommitResult> {
    checkString('message', message);
    files?.forEach((file, index) => checkString(`files[${index}]`, file));
    const { hash, note } = await call((cancel) => this.#native.gitCommit(message, files, gitOptions(settings), cancel), signal);
    return { commit_hash: hash, message, ...(note && { note }) };
  }

  async close(): Promise<void> {
    await this.#native.close();
  }
}

/** How a git tool runs git. */
export interface GitSettings {
  timeoutMs: number;
  runHooks: boolean;
  maxOutputChars: number;
}

function gitOptions({ timeoutMs, runHooks, maxOutputChars }: GitSettings): NativeGitOptions {
  return { hostEnv: JSON.stringify(process.env), timeoutMs, runHooks, maxOutputChars };
}

function execRequest(command: string | string[], options: api.ExecOptions): Parameters<NativeCommands['exec']>[0] {
  const { input, capture } = options;
  if (input !== undefined) checkContent('input', input);
  if (capture && (capture.shared !== true || capture.keep !== 'head')) {
    throw invalid("capture must be { maxBytes, shared: true, keep: 'head' }");
  }
  const maxOutputBytes = capture ? capture.maxBytes : (options.maxOutputBytes ?? MAX_OUTPUT_BYTES);
  return {
    command: checkCommand(command),
    cwd: checkCwd(options.cwd),
    // Read at each call: a variable set after the workspace was made counts.
    hostEnv: JSON.stringify(process.env),
    env: checkEnv(options.env),
    timeoutMs: options.timeoutMs === undefined ? undefined : checkNumber('timeoutMs', options.timeoutMs),
    input,
    maxOutputBytes: checkNumber(capture ? 'capture.maxBytes' : 'maxOutputBytes', maxOutputBytes),
    sharedHead: capture !== undefined,
    keepLeftover: checkLeftover(options.leftover) === 'keep',
    killGraceMs: checkNumber('killGraceMs', options.killGraceMs ?? KILL_GRACE_MS),
  };
}

function checkCommand(command: unknown): string | string[] {
  if (!Array.isArray(command)) {
    checkString('command', command);
    return command;
  }
  if (command.length === 0) throw invalid('command is an empty list: give the program and its arguments');
  command.forEach((word, index) => checkString(`command[${index}]`, word));
  return command;
}

function checkCwd(cwd: unknown): string {
  if (cwd === undefined) return '.';
  checkString('cwd', cwd);
  return cwd;
}

function checkEnv(env: Record<string, string> | undefined): Record<string, string> {
  const checked: Record<string, string> = {};
  // `undefined` is what reading an unset variable gives; it adds nothing.
  for (const [name, value] of Object.entries(env ?? {})) {
    if (value === undefined) continue;
    checkString('the name of a variable in env', name);
    checkString(`env.${name}`, value);
    checked[name] = value;
  }
  return checked;
}

function checkNumber(name: string, value: unknown): number {
  if (typeof value !== 'number') throw invalid(`${name} must be a number, not ${typeof value}`);
  return value;
}

function checkLeftover(leftover: unknown): 'kill' | 'keep' {
  if (leftover === undefined || leftover === 'kill') return 'kill';
  if (leftover === 'keep') return 'keep';
  throw invalid(`leftover must be 'kill' or 'keep', not ${JSON.stringify(leftover)}`);
}

type Listener = NonNullable<api.ExecOptions['onOutput']>;

/** A listener that throws must not end Node, nor the command: it is told once. */
export function guarded(onOutput: Listener): Listener {
  let told = false;
  return (output) => {
    try {
      onOutput(output);
    } catch (error) {
      if (!told) process.emitWarning(`onOutput threw: ${String(error)}`, 'CroftWarning');
      told = true;
    }
  };
}

export function execResult(native: NativeExecResult): api.ExecResult {
  const { stdout, stderr, exitCode, timedOut, droppedBytes, durationMs } = native;
  return {
    stdout,
    stderr,
    exitCode,
    timedOut,
    ...(native.aborted && { aborted: true }),
    ...(native.signal && { signal: native.signal }),
    truncated: droppedBytes > 0,
    droppedBytes,
    durationMs,
    ...(native.note && { note: native.note }),
    ...(native.containment && { containment: native.containment }),
  };
}
