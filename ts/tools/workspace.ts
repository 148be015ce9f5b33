/** All tools that a workspace's policy allows, asking where the policy says ask. */
import { z } from 'zod';
import { checkOptions } from '../check.js';
import { policyOf } from '../policy.js';
import type * as api from '../providers.js';
import { SessionApprovals } from './approvals.js';
import { createFsTools } from './fs.js';
import { createProcessTools, keepsProcesses } from './process.js';
import { createShellTool } from './shell.js';

const optionsSchema = z.strictObject({
  fs: z.custom<api.FsToolsOptions>((value) => typeof value === 'object' && value !== null, 'expected the options of createFsTools').optional(),
  shell: z.custom<api.ShellToolOptions | false>((value) => value === false || (typeof value === 'object' && value !== null), 'expected the options of createShellTool, or false').optional(),
  approvals: z.instanceof(SessionApprovals, { error: 'expected what createApprovals() gives' }).optional(),
});

export function createWorkspaceTools(workspace: api.Workspace, options: api.WorkspaceToolsOptions = {}): api.Tool[] {
  const { fs = {}, shell = {}, approvals } = checkOptions('createWorkspaceTools', optionsSchema, options);
  const policy = policyOf(workspace);
  const readOnly = fs.readOnly === true || policy?.native.offersWrites === false;
  const shared = approvals ? { approvals } : {};
  const tools: api.Tool[] = createFsTools(workspace, { ...shared, ...fs, readOnly });
  if (shell === false || policy?.native.offersShell === false) return tools;
  if (!isProcessProvider(workspace)) return [...tools, createShellTool(workspace, { ...shared, ...shell })];
  const background = shell.background ?? keepsProcesses(workspace);
  const shellTool = createShellTool(workspace, { ...shared, ...shell, background } as api.ShellToolOptions & { background: true });
  return [...tools, shellTool, ...(background ? createProcessTools(workspace) : [])];
}

function isProcessProvider(workspace: api.Workspace): workspace is api.Workspace & api.ProcessProvider {
  return 'spawn' in workspace && 'readProcessOutput' in workspace && 'killProcess' in workspace;
}
