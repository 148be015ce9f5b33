/** The error classes callers see. Codes are listed in docs/errors.md. */

import type { WorkspaceErrorCode } from '../index.js';

export interface WorkspaceErrorOptions {
  path?: string | undefined;
  cause?: unknown;
}

/** A refusal or failure with a stable `code` and a message a model can act on. */
export class WorkspaceError extends Error {
  override readonly name: string = 'WorkspaceError';
  readonly code: WorkspaceErrorCode;
  /** The workspace path concerned, as the caller wrote it. */
  readonly path: string | undefined;

  constructor(message: string, code: WorkspaceErrorCode = 'IO', options: WorkspaceErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.path = options.path;
  }
}

/** The policy says deny. */
export class PermissionDeniedError extends WorkspaceError {
  override readonly name = 'PermissionDeniedError';

  constructor(message: string, options: WorkspaceErrorOptions = {}) {
    super(message, 'POLICY_DENIED', options);
  }
}

/** The workspace was closed before or during the call. */
export class WorkspaceClosedError extends WorkspaceError {
  override readonly name = 'WorkspaceClosedError';

  constructor(message = 'the workspace is closed: create a new one', options: WorkspaceErrorOptions = {}) {
    super(message, 'CLOSED', options);
  }
}
