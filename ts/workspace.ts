/** A directory on disk with a host shell. */
import { NativeTree } from '#native';
import { z } from 'zod';
import { callSync } from './call.js';
import { checkOptions, checkString } from './check.js';
import { ExecutorCommands } from './executor.js';
import { TreeFiles } from './files.js';
import { limitsSchema } from './limits.js';
import { Commands } from './process.js';
import { existsBelow, policyFields, policyJson, surroundings } from './policy.js';
import type * as api from './providers.js';
import { adapterSchema } from './sandbox/adapter.js';

const optionsSchema = z.strictObject({
  root: z.string().min(1, 'expected an existing directory, got an empty string'),
  symlinks: z.enum(['inside', 'deny']).optional(),
  protect: z.array(z.string()).optional(),
  fsync: z.boolean().optional(),
  roots: z.array(z.string().min(1)).optional(),
  ...policyFields,
  env: z.record(z.string(), z.string()).optional(),
  inheritEnv: z.union([z.array(z.string()), z.literal(true)]).optional(),
  shell: z.string().min(1).optional(),
  venv: z.boolean().optional(),
  executor: adapterSchema.optional(),
  limits: limitsSchema.optional(),
});

export class NodeWorkspace extends TreeFiles implements api.Workspace, api.ProcessProvider {
  readonly root: string;
  /** Of this host, also with an executor: git, the list of background processes. @internal */
  readonly host: Commands;
  readonly #executor: ExecutorCommands | undefined;
  readonly #venv: boolean;
  readonly #linksDenied: boolean;

  constructor(options: api.NodeWorkspaceOptions) {
    const checked = checkOptions('NodeWorkspace', optionsSchema, options);
    checkString('root', checked.root);
    const { root, symlinks, protect, fsync, executor, env, inheritEnv, shell } = checked;
    super(
      callSync(() => NativeTree.disk({ root, symlinks, protect, fsync, policy: policyJson(checked) })),
      checked.limits,
    );
    this.root = this.tree.root ?? root;
    this.host = new Commands(this.tree, checked);
    const workspace = (): { root: string; policy: api.PolicySnapshot } => ({ root: this.root, policy: this.policy.snapshot() });
    this.#executor = executor && new ExecutorCommands(this.host, executor, workspace(), { env, inheritEnv, shell });
    // What an executor sees of the root is its own business, and so is an interpreter in it.
    this.#venv = checked.venv !== false && executor === undefined;
    this.#linksDenied = symlinks === 'deny';
  }

  async exec(command: string | string[], options: api.ExecOptions = {}): Promise<api.ExecResult> {
    this.checkOpen(options.cwd ?? '.');
    this.policy.checkCommand(command, options.cwd);
    return await (this.#executor ?? this.host).exec(command, options);
  }

  async spawn(command: string | string[], options: api.SpawnOptions = {}): Promise<api.BackgroundProcess> {
    this.checkOpen(options.cwd ?? '.');
    this.policy.checkCommand(command, options.cwd);
    return await (this.#executor ?? this.host).spawn(command, options);
  }

  async readProcessOutput(id: string, options: api.CallOptions & { waitMs?: number } = {}): Promise<api.ProcessOutput> {
    return await this.host.read(id, options);
  }

  async killProcess(id: string): Promise<api.ProcessOutput> {
    return await (this.#executor ?? this.host).kill(id);
  }

  backgroundProcesses(): api.BackgroundProcess[] {
    return this.host.list();
  }

  statusReminder(): string | undefined {
    return this.host.statusReminder();
  }

  instructions(): string {
    const options = { venv: this.#venv, background: this.#executor?.capabilities().spawn ?? true, linksDenied: this.#linksDenied };
    return this.policy.instructions(surroundings(existsBelow(this.root), options));
  }

  capabilities(): api.WorkspaceCapabilities {
    const executor = this.#executor?.capabilities();
    return { ...this.host.capabilities(), ...(executor && { executor }) };
  }

  async close(): Promise<void> {
    this.markClosed();
    await (this.#executor ?? this.host).close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
