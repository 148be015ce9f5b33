export { PermissionDeniedError, WorkspaceClosedError, WorkspaceError, type WorkspaceErrorOptions } from './errors.js';
