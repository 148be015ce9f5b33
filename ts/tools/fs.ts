/** The file tools: what the model sees, over any provider. */
import { z } from 'zod';
import { checkLimit, checkOptions } from '../check.js';
import type { FsProvider, FsToolsOptions, Tool } from '../providers.js';
import { describeEdit, describeWrite } from './answers.js';
import { fsToolsSchema, named, pathSchema, type FsContext } from './fs-context.js';
import { extraTool } from './fs-extra.js';
import { checkIncluded, toolFiles } from './source.js';
import { defineTool } from './tool.js';

const directory = z.string().nullish().describe('Directory to look in, workspace-relative; default: the root');

export function createFsTools(fs: FsProvider, options: FsToolsOptions = {}): Tool[] {
  const settings = checkOptions('createFsTools', fsToolsSchema, options);
  checkIncluded(fs, settings.include);
  const context: FsContext = { fs, files: toolFiles(fs, settings), settings };
  const reading = [readFile(context), listDir(context), glob(context), grep(context)];
  const writing = [writeFile(context), editFile(context)];
  const extra = [...new Set(settings.include)].map((name) => extraTool(name, context));
  return [...reading, ...writing, ...extra].filter(({ readOnly }) => readOnly || !settings.readOnly);
}

function readFile(context: FsContext): Tool {
  const { settings, files } = context;
  return defineTool({
    ...named('read_file', context),
    description: `Reads a text file. Returns ${settings.hashLines ? 'lines as L{number}:{hash}:{text}' : 'numbered lines'}; when the answer is cut, its last line says which lines were shown and the offset to go on from.`,
    readOnly: true,
    schema: z.object({
      path: pathSchema,
      offset: z.number().int().min(1).nullish().describe('First line to show, from 1'),
      limit: z.number().int().min(1).nullish().describe(`Lines to show, at most ${settings.maxReadLines}`),
    }),
    run: async (input, { signal }) => {
      const limit = Math.min(input.limit ?? settings.maxReadLines, settings.maxReadLines);
      const request = { offset: input.offset ?? 1, limit, maxChars: settings.maxOutputChars };
      const hashes = settings.hashLines ? { hashLength: settings.hashLength } : {};
      return (await files.page(input.path, { ...request, ...hashes }, signal)).text;
    },
  });
}

function writeFile(context: FsContext): Tool {
  const { settings, files } = context;
  return defineTool({
    ...named('write_file', context),
    description: 'Creates or replaces a text file, with missing parent directories. Prefer edit_file for changes to a file that exists.',
    readOnly: false,
    schema: z.object({
      path: pathSchema,
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

function editFile(context: FsContext): Tool {
  const { settings, files } = context;
  return defineTool({
    ...named('edit_file', context),
    description:
      'Replaces exact text in a file. old_string must be unique (add surrounding lines) unless replace_all is set, and must not contain the line numbers that read_file shows.',
    readOnly: false,
    schema: z.object({
      path: pathSchema,
      old_string: z.string().describe('The exact text to replace, whitespace included'),
      new_string: z.string().describe('What to put there; may be empty'),
      replace_all: z.boolean().nullish().describe('Replace every occurrence'),
    }),
    run: async (input, { signal }) => {
      const edit = { oldString: input.old_string, newString: input.new_string, replaceAll: input.replace_all === true };
      return describeEdit(input.path, await files.edit(input.path, [edit], settings.lineEndings, signal));
    },
  });
}

function listDir(context: FsContext): Tool {
  return defineTool({
    ...named('list_dir', context),
    description: 'Lists a directory, sorted; directories end with /. With recursive, the whole tree below it.',
    readOnly: true,
    schema: z.object({ path: directory, recursive: z.boolean().nullish().describe('Default false') }),
    run: async (input, { signal }) => await context.files.list(input.path ?? '.', input.recursive === true, signal),
  });
}

function glob(context: FsContext): Tool {
  return defineTool({
    ...named('glob', context),
    description:
      'Finds files by name: one root-relative path per line, sorted. * stays in one directory, ** crosses directories; also ?, [abc], [!abc], {a,b}.',
    readOnly: true,
    schema: z.object({ pattern: z.string().describe('For example src/**/*.ts'), path: directory }),
    run: async (input, { signal }) => await context.files.glob(input.pattern, input.path ?? '.', signal),
  });
}

function grep(context: FsContext): Tool {
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
