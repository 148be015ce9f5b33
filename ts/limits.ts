/** The `limits` option of both workspaces. */
import { z } from 'zod';

const bytes = z.number().int().min(1);

export const limitsSchema = z.strictObject({ maxFileBytes: bytes.optional(), maxWriteBytes: bytes.optional() });
