/** The file tools: what the model sees, over any provider. */
import { z } from 'zod';
import { checkLimit, checkOptions } from '../check.js';
import { MAX_FILE_BYTES } from '../files.js';
import type { FsProvider, FsToolName, FsToolsOptions, Tool } from '../providers.js';
import { describeEdit, describeWrite } from './answers.js';
import { toolFiles, type ToolFiles } from './source.js';
import { defineTool, type Approval } from './tool.js';

const count = z.number().int().min(1);
const approval = z.custom<Approval<never>>((value) => typeof value === 'boolean' || typeof value === 'function', 'expected a boolean or a function');
const perTool = <T extends z.ZodType>(value: T) =>
  z.strictObject({
    read_file: value.optional(),
    write_file: value.optional(),
    edit_file: value.optional(),
    list_dir: value.optional(),
    glob: value.optional(),
    grep: value.optional(),
  });

const optionsSchema = z.strictObject({
  readOnly: z.boolean().default(false),
  needsApproval: perTool(approval).default({}),
  maxReadLines: count.default(2000),
  maxOutputChars: count.min(200).default(50_000),
  maxResults: count.default(200),
  maxFilesScanned: count.default(20_000),
  ignore: z.array(z.string()).default(['.git', 'node_modules']),
  gitignore: z.boolean().default(true),
  lineEndings: z.enum(['preserve', 'strict']).default('preserve'),
  maxFileBytes: count.default(MAX_FILE_BYTES),
  maxWriteBytes: count.default(MAX_FILE_BYTES),
  names: perTool(z.string().min(1)).default({}),
});

export type FsToolsSettings = z.output<typeof optionsSchema>;

interface Context {
  files: ToolFiles;
  settings: FsToolsSettings;
}

const path = z.string().describe('Workspace-relative path with / separators');
const directory = z.string().nullish().describe('Directory to look in, workspace-relative; default: the root');

export function createFsTools(fs: FsProvider, options: FsToolsOptions = {}): Tool[] {
  const settings = checkOptions('createFsTools', optionsSchema, options);
  const context: Context = { files: toolFiles(fs, settings), settings };
  const reading = [readFile(context), listDir(context), glob(context), grep(context)];
  return settings.readOnly ? reading : [...reading, writeFile(context), editFile(context)];
}

function named<T extends FsToolName>(name: T, { settings }: Context) {
  return { name: settings.names[name] ?? name, approval: settings.needsApproval[name] as Approval<unknown> };
}

function readFile(context: Context): Tool {
  const { settings, files } = context;
  return defineTool({
    ...named('read_file', context),
    description:
      'Reads a text file. Returns numbered lines; when the answer is cut, its last line says which lines were shown and the offset to go on from.',
    readOnly: true,
    schema: z.object({
      path,
      offset: z.number().int().min(1).nullish().describe('First line to show, from 1'),
      limit: z.number().int().min(1).nullish().describe(`Lines to show, at most ${settings.maxReadLines}`),
    }),
    run: async (input, { signal }) => {
      const limit = Math.min(input.limit ?? settings.maxReadLines, settings.maxReadLines);
      const request = { offset: input.offset ?? 1, limit, maxChars: settings.maxOutputChars };
      return (await files.page(input.path, request, signal)).text;
    },
  });
}

function writeFile(context: Context): Tool {
  const { settings, files } = context;
  return defineTool({
    ...named('write_file', context),
    description: 'Creates or replaces a text file, with missing parent directories. Prefer edit_file for changes to a file that exists.',
    readOnly: false,
    schema: z.object({
      path,
      content: z.string().describe('The whole new content'),
      create_only: z.boolean().nullish().describe('Fail when the file exists'),
    }),
    run: async (input, { signal }) => {
      checkLimit('content', Buffer.byteLength(input.content), settings.maxWriteBytes);
      const written = await files.write(input.path, input.content, input.create_only === true, signal);
      return describeWrite(input.path, Buffer.byteLength(input.content), written);
    },
  });
}

function editFile(context: Context): Tool {
  const { settings, files } = context;
  return defineTool({
    ...named('edit_file', context),
    description:
      'Replaces exact text in a file. old_string must be unique (add surrounding lines) unless replace_all is set, and must not contain the line numbers that read_file shows.',
    readOnly: false,
    schema: z.object({
      path,
      old_string: z.string().describe('The exact text to replace, whitespace included'),
      new_string: z.string().describe('What to put there; may be empty'),
      replace_all: z.boolean().nullish().describe('Replace every occurrence'),
    }),
    run: async (input, { signal }) => {
      const { lineEndings } = settings;
      const edit = { oldString: input.old_string, newString: input.new_string, replaceAll: input.replace_all === true, lineEndings };
      return describeEdit(input.path, await files.edit(input.path, edit, signal));
    },
  });
}

function listDir(context: Context): Tool {
  return defineTool({
    ...named('list_dir', context),
    description: 'Lists a directory, sorted; directories end with /. With recursive, the whole tree below it.',
    readOnly: true,
    schema: z.object({ path: directory, recursive: z.boolean().nullish().describe('Default false') }),
    run: async (input, { signal }) => await context.files.list(input.path ?? '.', input.recursive === true, signal),
  });
}

function glob(context: Context): Tool {
  return defineTool({
    ...named('glob', context),
    description:
      'Finds files by name: one root-relative path per line, sorted. * stays in one directory, ** crosses directories; also ?, [abc], [!abc], {a,b}.',
    readOnly: true,
    schema: z.object({ pattern: z.string().describe('For example src/**/*.ts'), path: directory }),
    run: async (input, { signal }) => await context.files.glob(input.pattern, input.path ?? '.', signal),
  });
}

function grep(context: Context): Tool {
  return defineTool({
    ...named('grep', context),
    description: 'Searches file contents, line by line, with a JavaScript regular expression. Returns path:line: text.',
    readOnly: true,
    schema: z.object({
      pattern: z.string().describe('JavaScript regular expression, without slashes'),
      path: z.string().nullish().describe('File or directory to search; default: the root'),
      glob: z.string().nullish().describe('Only files whose path matches, for example *.ts'),
      ignore_case: z.boolean().nullish(),
      literal: z.boolean().nullish().describe('Take the pattern as plain text'),
      context: z.number().int().min(0).max(50).nullish().describe('Lines to show before and after each match'),
      include_ignored: z.boolean().nullish().describe('Also search files that .gitignore excludes'),
    }),
    run: async (input, { signal }) =>
      await context.files.grep(
        {
          pattern: input.pattern,
          path: input.path ?? '.',
          glob: input.glob ?? undefined,
          ignoreCase: input.ignore_case === true,
          literal: input.literal === true,
          context: input.context ?? 0,
          includeIgnored: input.include_ignored === true,
        },
        signal,
      ),
  });
}
