/** The policy of a workspace: its options checked, its verdicts, its part of the system prompt. Native code decides. */
import { lstatSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import type { NativePolicy, NativeTree } from '#native';
import { z } from 'zod';
import { callSync } from './call.js';
import { checkString, invalid } from './check.js';
import { PermissionDeniedError } from './errors.js';
import type * as api from './providers.js';

const action = z.enum(['allow', 'ask', 'deny']);
const patterns = z.array(z.string());
const pathRules = z.array(z.strictObject({ pattern: z.string(), action, ops: z.array(z.enum(['read', 'write'])).optional() }));
const commandRules = z.array(z.strictObject({ pattern: z.string(), action }));

const rules = {
  readable: patterns.optional(),
  writable: patterns.optional(),
  deniedPaths: patterns.optional(),
  pathRules: pathRules.optional(),
  commandRules: commandRules.optional(),
};

/** Spread into the schema of each workspace's options. */
export const policyFields = {
  mode: z.enum(['readonly', 'coding', 'trusted']).optional(),
  ...rules,
  policy: z
    .strictObject({
      writeInside: action.optional(),
      readOutside: action.optional(),
      writeOutside: action.optional(),
      shell: z.enum(['allow', 'ask', 'deny', 'none']).optional(),
      ...rules,
    })
    .optional(),
  asks: z.enum(['prompt', 'deny']).optional(),
};

type Options = api.PolicyOptions & { roots?: string[] | undefined; shell?: string | undefined };

/** The options as the addon takes them. */
export function policyJson(options: Options): string {
  const { mode, readable, writable, deniedPaths, pathRules, commandRules, policy, asks, roots = [], shell } = options;
  const home = homedir();
  return JSON.stringify({ mode, readable, writable, deniedPaths, pathRules, commandRules, policy, asks, roots, home, shellKind: shellKind(shell) });
}

function shellKind(shell: string | undefined): 'posix' | 'cmd' | 'other' {
  if (shell === undefined) return process.platform === 'win32' ? 'cmd' : 'posix';
  const name = basename(shell).toLowerCase().replace(/\.exe$/, '');
  if (name === 'cmd') return 'cmd';
  return ['sh', 'dash', 'ash', 'bash'].includes(name) ? 'posix' : 'other';
}

/** What the tools ask of a workspace; see `policyOf`. */
export class WorkspacePolicy {
  readonly native: NativePolicy;

  constructor(tree: NativeTree) {
    this.native = tree.policy();
  }

  decidePath(path: string, op: 'read' | 'write'): api.PolicyDecision {
    checkString('path', path);
    if (op !== 'read' && op !== 'write') throw invalid(`op must be 'read' or 'write', not ${JSON.stringify(op)}`);
    return callSync(() => this.native.decidePath(path, op));
  }

  decideCommand(command: string | string[], cwd = '.'): api.PolicyDecision {
    for (const word of Array.isArray(command) ? command : [command]) checkString('command', word);
    checkString('cwd', cwd);
    return callSync(() => this.native.decideCommand(command, cwd));
  }

  /** Before anything is started: `deny` is refused whoever calls. */
  checkCommand(command: unknown, cwd: string | undefined): void {
    if (!this.native.isConfigured || !isCommand(command)) return;
    const { action, reason } = this.decideCommand(command, cwd);
    if (action === 'deny') throw new PermissionDeniedError(reason);
  }

  /** For executors. */
  snapshot(): api.PolicySnapshot {
    return callSync(() => JSON.parse(this.native.snapshot()) as api.PolicySnapshot);
  }

  instructions(surroundings: Surroundings): string {
    return callSync(() => this.native.instructions(JSON.stringify(surroundings)));
  }
}

/** What is not a command at all is refused by its own check. */
function isCommand(command: unknown): command is string | string[] {
  return typeof command === 'string' || (Array.isArray(command) && command.every((word) => typeof word === 'string'));
}

export interface Surroundings {
  venv?: string | undefined;
  packageManager?: string | undefined;
  git: boolean;
  background: boolean;
  linksDenied: boolean;
}

const LOCK_FILES: readonly (readonly [string, string])[] = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
  ['package-lock.json', 'npm'],
  ['uv.lock', 'uv'],
  ['poetry.lock', 'poetry'],
  ['Pipfile.lock', 'pipenv'],
  ['Cargo.lock', 'cargo'],
];

/** Names at the root that say how the project is worked on; `exists` looks a relative path up. */
export function surroundings(exists: (path: string) => boolean, options: { venv: boolean; background: boolean; linksDenied: boolean }): Surroundings {
  const python = process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python';
  const venv = options.venv ? ['.venv', 'venv'].find((name) => exists(`${name}/${python}`)) : undefined;
  const packageManager = LOCK_FILES.find(([name]) => exists(name))?.[1];
  return { venv, packageManager, git: exists('.git'), background: options.background, linksDenied: options.linksDenied };
}

/** A look at names only; nothing is opened. */
export function existsBelow(root: string): (path: string) => boolean {
  return (path) => lstatSync(join(root, path), { throwIfNoEntry: false }) !== undefined;
}

/** The policy of a workspace of ours, if some policy option was given to it. */
export function policyOf(provider: object): WorkspacePolicy | undefined {
  const { policy } = provider as { policy?: unknown };
  return policy instanceof WorkspacePolicy && policy.native.isConfigured ? policy : undefined;
}
