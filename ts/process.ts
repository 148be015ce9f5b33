import type { NativeTree } from '#native';
import { WorkspaceError } from './errors.js';
import type * as api from './providers.js';

export class Commands {
  constructor(readonly tree: NativeTree, _options: Pick<api.NodeWorkspaceOptions, 'env' | 'inheritEnv' | 'shell' | 'venv'>) {}
  async exec(_command: string | string[], _options: api.ExecOptions): Promise<api.ExecResult> {
    throw new WorkspaceError('not yet', 'UNSUPPORTED');
  }
  capabilities(): api.WorkspaceCapabilities {
    return { resolver: this.tree.resolver() === 'walk' ? 'walk' : 'openat2', containment: 'none', platform: process.platform };
  }
  async close(): Promise<void> {}
}
