/** The file tools that `include` adds. */
import { z } from 'zod';
import { invalid } from '../check.js';
import type { FsExtraToolName, HashEdit, Tool } from '../providers.js';
import { describeHashEdit, describeMultiEdit, describePatch } from './answers.js';
import { named, pathSchema, type FsContext } from './fs-context.js';
import { defineTool } from './tool.js';

export function extraTool(name: FsExtraToolName, context: FsContext): Tool {
  return makers[name](context);
}

const makers: Record<FsExtraToolName, (context: FsContext) => Tool> = {
  multi_edit: multiEdit,
  edit_at_hash: editAtHash,
  apply_patch: applyPatch,
  rename,
  remove,
  view_image: viewImage,
};

function multiEdit(context: FsContext): Tool {
  const { settings, files } = context;
  return defineTool({
    ...named('multi_edit', context),
    description: 'Makes several exact replacements in one file, in order, each on what the one before left. All are made or none.',
    readOnly: false,
    schema: z.object({
      path: pathSchema,
      edits: z
        .array(
          z.object({
            old_string: z.string().describe('The exact text to replace, whitespace included'),
            new_string: z.string().describe('What to put there; may be empty'),
            replace_all: z.boolean().nullish().describe('Replace every occurrence'),
          }),
        )
        .min(1),
    }),
    run: async ({ path, edits }, { signal }) => {
      const list = edits.map((edit) => ({ oldString: edit.old_string, newString: edit.new_string, replaceAll: edit.replace_all === true }));
      return describeMultiEdit(path, await files.edit(path, list, settings.lineEndings, signal));
    },
  });
}

const hashEdit = z.object({
  line: z.number().int().describe('Line number, as the file was read'),
  hash: z.string().describe('Hash of that line, as read_file shows it'),
  end_line: z.number().int().nullish().describe('Last line of a range'),
  hashes: z.array(z.string()).nullish().describe('For a range: the hash of every line in it'),
  op: z.enum(['replace', 'insert_before', 'insert_after', 'delete']),
  content: z.string().nullish().describe('The new lines, without anchors'),
});

function editAtHash(context: FsContext): Tool {
  const { settings, files } = context;
  return defineTool({
    ...named('edit_at_hash', context),
    description:
      'Edits lines named by number and hash (L12:<hash>:text in read_file). Give line_number, hash and new_content (null deletes the line), or a list of edits, all numbered as the file was read and made all or none.',
    readOnly: false,
    schema: z.object({
      path: pathSchema,
      line_number: z.number().int().nullish(),
      hash: z.string().nullish(),
      new_content: z.string().nullish().describe('One or more lines; null deletes the line'),
      edits: z.array(hashEdit).min(1).nullish(),
    }),
    run: async (input, { signal }) => {
      const edits = input.edits?.map(listed) ?? [single(input)];
      return describeHashEdit(input.path, await files.editAtHash(input.path, edits, settings.hashLength, signal));
    },
  });
}

function listed({ line, hash, end_line, hashes, op, content }: z.output<typeof hashEdit>): HashEdit {
  const range = { ...(end_line == null ? {} : { endLine: end_line }), ...(hashes == null ? {} : { hashes }) };
  return { line, hash, op, ...range, ...(content == null ? {} : { content }) };
}

interface SingleHashEdit {
  line_number?: number | null | undefined;
  hash?: string | null | undefined;
  new_content?: string | null | undefined;
}

/** `new_content` left out is a mistake; only a `null` that was written deletes. */
function single({ line_number, hash, new_content }: SingleHashEdit): HashEdit {
  if (line_number == null || hash == null) throw invalid('edit_at_hash: give line_number and hash, or edits');
  if (new_content === undefined) throw invalid('edit_at_hash: new_content is missing: give the new lines, or null to delete the line');
  return new_content === null ? { line: line_number, hash, op: 'delete' } : { line: line_number, hash, op: 'replace', content: new_content };
}

function applyPatch(context: FsContext): Tool {
  return defineTool({
    ...named('apply_patch', context),
    description:
      'Applies a patch to one or many files, all or none: a unified diff (git headers for new, deleted and renamed files) or a *** Begin Patch envelope. Context lines must match exactly.',
    readOnly: false,
    schema: z.object({
      patch: z.string().min(1),
      fuzz: z.number().int().min(0).max(2).nullish().describe('Context lines a hunk may lose at each end; default 0'),
    }),
    run: async ({ patch, fuzz }, { signal }) => describePatch(await context.files.applyPatch(patch, fuzz ?? 0, signal)),
  });
}

function rename(context: FsContext): Tool {
  return defineTool({
    ...named('rename', context),
    description: 'Renames or moves a file or directory inside the workspace; missing parent directories are made.',
    readOnly: false,
    schema: z.object({ from: pathSchema, to: pathSchema, overwrite: z.boolean().nullish().describe('Replace what is there; default false') }),
    run: async ({ from, to, overwrite }, { signal }) => {
      await context.files.rename(from, to, overwrite === true, signal);
      return `Renamed ${JSON.stringify(from)} to ${JSON.stringify(to)}.`;
    },
  });
}

function remove(context: FsContext): Tool {
  return defineTool({
    ...named('remove', context),
    description: 'Removes a file, a link (never its target) or an empty directory; with recursive, a directory and all that is in it.',
    readOnly: false,
    schema: z.object({ path: pathSchema, recursive: z.boolean().nullish() }),
    run: async ({ path, recursive }, { signal }) => {
      await context.files.remove(path, recursive === true, signal);
      return `Removed ${JSON.stringify(path)}.`;
    },
  });
}

function viewImage(context: FsContext): Tool {
  return defineTool({
    ...named('view_image', context),
    description: 'Returns a PNG, JPEG, GIF or WebP image of at most 5 MB.',
    readOnly: true,
    schema: z.object({ path: pathSchema }),
    run: async ({ path }, { signal }) => {
      const { mediaType, data } = await context.files.image(path, signal);
      return { type: 'image' as const, mediaType, data: data.toString('base64') };
    },
  });
}
