/** What every sandbox checks alike before a command runs. */
import { checkVariables, type NativeAttended, type NativeExit } from '#native';
import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { callSync } from '../call.js';
import { checkContent, checkString, invalid } from '../check.js';
import { WorkspaceError } from '../errors.js';
import type * as api from '../providers.js';

/** A call always ends: a command that hangs must not hold an agent for ever. */
export const DEFAULT_TIMEOUT_MS = 120_000;
export const MAX_OUTPUT_BYTES = 1024 * 1024;
/** The longest delay a Node timer takes. */
export const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The other methods are optional, or only looked at when they are needed. */
export const adapterSchema = z.custom<api.SandboxAdapter>(
  (value) => typeof value === 'object' && value !== null && typeof (value as api.SandboxAdapter).run === 'function',
  'expected a sandbox: an object with run()',
);

/** What is run, checked. */
export interface CheckedProgram {
  command: string[];
  cwd: string;
  root: string;
  env: Record<string, string>;
}

/** A run request with its defaults. */
export interface CheckedRun extends CheckedProgram {
  input: string | Uint8Array | undefined;
  timeoutMs: number;
  maxOutputBytes: number;
}

export function checkRun(options: api.SandboxRunOptions, defaultTimeoutMs: number): CheckedRun {
  const { input } = options;
  if (input !== undefined) checkContent('input', input);
  const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
  checkWhole('timeoutMs', timeoutMs, 1, MAX_TIMEOUT_MS);
  const maxOutputBytes = options.maxOutputBytes ?? MAX_OUTPUT_BYTES;
  checkWhole('maxOutputBytes', maxOutputBytes, 0, Number.MAX_SAFE_INTEGER);
  return { ...checkProgram(options), input, timeoutMs, maxOutputBytes };
}

export function checkProgram(options: api.SandboxSpawnOptions | api.SandboxRunOptions): CheckedProgram {
  const { command, args = [], cwd, root = cwd } = options;
  checkString('command', command);
  if (command === '') throw invalid('command is empty: give the program to run');
  if (!Array.isArray(args)) throw invalid('args must be a list of strings');
  args.forEach((arg, index) => checkString(`args[${index}]`, arg));
  checkAbsolute('cwd', cwd);
  checkAbsolute('root', root);
  return { command: [command, ...args], cwd, root, env: checkEnv(options.env) };
}

function checkAbsolute(name: string, path: unknown): asserts path is string {
  checkString(name, path);
  if (!isAbsolute(path)) throw invalid(`${name} must be an absolute path, not ${JSON.stringify(path)}`);
}

export function checkWhole(name: string, value: unknown, min: number, max: number): void {
  if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max) return;
  throw invalid(`${name} must be a whole number from ${min} to ${max}, not ${String(value)}`);
}

export function checkEnv(env: Record<string, string> | undefined): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(env ?? {})) {
    if (value === undefined) continue;
    checkString('the name of a variable in env', name);
    checkString(`env.${name}`, value);
    checked[name] = value;
  }
  callSync(() => checkVariables(checked));
  return checked;
}

/** A failure of an adapter as a `WorkspaceError`; other people's adapters throw what they like. */
export function asWorkspaceError(error: unknown): WorkspaceError {
  if (error instanceof WorkspaceError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new WorkspaceError(`the sandbox failed: ${message}`, 'SANDBOX_UNAVAILABLE', { cause: error });
}

/** A spawned command as its caller sees it. */
export function sandboxProcess(native: NativeAttended, exited: Promise<api.SandboxExit>): api.SandboxProcess {
  const kill = async (): Promise<void> => {
    await native.kill();
    await exited;
  };
  return { pid: native.pid, exited, kill };
}

export function sandboxExit({ exitCode, signal, oomKilled, hint }: NativeExit): api.SandboxExit {
  return { exitCode, ...(signal && { signal }), ...(oomKilled && { oomKilled }), ...(hint && { hint }) };
}
