/** What `import 'croft'` gives; index.d.ts documents it. */
export { createCredentialBroker } from './broker.js';
export { PermissionDeniedError, WorkspaceClosedError, WorkspaceError } from './errors.js';
export { MemoryWorkspace } from './memory.js';
export { NoopSandbox, SandboxShell, SubprocessSandbox } from './sandbox.js';
export { applyEdit, applyEdits, applyHashEdits, applyV4aDiff, clipText, formatPage, hashLine, normalizeWorkspacePath, stripAnsi } from './text.js';
export { createApprovals } from './tools/approvals.js';
export { createFsTools } from './tools/fs.js';
export { createGitTools } from './tools/git.js';
export { createProcessTools } from './tools/process.js';
export { createShellTool } from './tools/shell.js';
export { createWorkspaceTools } from './tools/workspace.js';
export { NodeWorkspace } from './workspace.js';
