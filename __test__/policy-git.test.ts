// What git shows and commits of a path that the policy denies: nothing, by the path, by a link, by a link's name.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { createGitTools, NodeWorkspace, type NodeWorkspaceOptions, PermissionDeniedError, type Tool } from 'croft';

const DENIED = ['.env*', 'secrets', 'build/out'];
/** Whatever is denied holds this word, and nothing else does. */
const SECRET = 'SECRET';
const TRACKED: Record<string, string> = {
  'a.txt': 'a\n',
  'sub/b.txt': 'b\n',
  '.env': `${SECRET} 1\n`,
  'sub/.env.local': `${SECRET} 2\n`,
  'secrets/key': `${SECRET} 3\n`,
  'build/out/z': `${SECRET} 4\n`,
  'build/log': 'log\n',
};

interface Repository {
  root: string;
  git(...args: string[]): string;
  put(path: string, content: string): void;
  tool(name: string, input: object): Promise<unknown>;
  asks(name: string, input: object): Promise<boolean>;
}

async function inRepository(run: (repository: Repository) => Promise<void>, policy: Partial<NodeWorkspaceOptions> = { deniedPaths: DENIED }): Promise<void> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'croft-policy-git-')));
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const put = (path: string, content: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  };
  const workspace = new NodeWorkspace({ root, ...policy });
  const named = (name: string): Tool => {
    const tool = createGitTools(workspace).find((tool) => tool.name === name);
    assert.ok(tool, name);
    return tool;
  };
  try {
    git('init', '-q', '-b', 'main');
    git('config', 'user.name', 'T');
    git('config', 'user.email', 't@example.invalid');
    git('config', 'diff.renames', 'copies');
    for (const [path, content] of Object.entries(TRACKED)) put(path, content);
    git('add', '.');
    git('commit', '-q', '-m', 'base');
    await run({ root, git, put, tool: (name, input) => named(name).execute(input), asks: async (name, input) => await named(name).needsApproval(input) });
  } finally {
    await workspace.close();
    rmSync(root, { recursive: true, force: true });
  }
}

const refused = (error: unknown): boolean => error instanceof PermissionDeniedError && error.code === 'POLICY_DENIED';

/** Neither the content nor the name of anything denied. */
function assertHidden(answer: unknown): string {
  const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
  assert.doesNotMatch(text, /SECRET|\.env|secrets|build\/out/);
  return text;
}

function committed({ git }: Repository): string[] {
  return git('show', '--name-only', '--no-renames', '--format=', 'HEAD').split('\n').filter(Boolean).sort();
}

test('git_status lists no denied path, whatever has become of it', async () => {
  await inRepository(async ({ root, git, put, tool }) => {
    put('.env', `${SECRET} staged\n`);
    git('add', '.env');
    put('.env', `${SECRET} unstaged\n`);
    git('rm', '-q', 'secrets/key');
    git('mv', 'build/out/z', 'moved-out');
    git('mv', 'a.txt', '.env.a');
    put('secrets/new', SECRET);
    put('.env.new', SECRET);
    put('seen', 'x\n');
    symlinkSync('.env', join(root, 'innocent'));
    symlinkSync('build/log', join(root, '.env.link'));
    symlinkSync('secrets', join(root, 'folder'));
    // A repository of its own is told about as a directory.
    git('init', '-q', 'secrets/nested');
    git('init', '-q', 'seen-nested');
    const status = await tool('git_status', {});
    assert.deepEqual(status, { branch: 'main', staged: ['a.txt', 'moved-out'], unstaged: [], untracked: ['seen', 'seen-nested/'], conflicted: [] });
  });
});

test('git_status lists no denied path that is in conflict, and nothing is committed beside one', async () => {
  await inRepository(async (repository) => {
    const { git, put, tool } = repository;
    git('checkout', '-q', '-b', 'other');
    put('.env', `${SECRET} theirs\n`);
    git('commit', '-q', '-am', 'theirs');
    git('checkout', '-q', 'main');
    put('.env', `${SECRET} ours\n`);
    git('commit', '-q', '-am', 'ours');
    assert.throws(() => git('merge', 'other'));
    put('a.txt', 'A\n');
    assert.deepEqual(await tool('git_status', {}), { branch: 'main', staged: [], unstaged: ['a.txt'], untracked: [], conflicted: [] });
    assert.match(assertHidden(await tool('git_diff', {})), /^\+A$/m);
    assert.equal(await tool('git_diff', { staged: true }), '[no differences]');
    for (const input of [{ message: 'm' }, { message: 'm', files: ['a.txt'] }]) {
      await assert.rejects(tool('git_commit', input), (error: Error) => refused(error) && Boolean(assertHidden(error.message)));
    }
  });
});

test('git_diff shows no denied path: all, by directory, by name, staged and not', async () => {
  await inRepository(async ({ git, put, tool }) => {
    const change = (): void => {
      for (const path of Object.keys(TRACKED)) put(path, `${TRACKED[path]}more ${/env|secrets|out/.test(path) ? SECRET : ''}\n`);
    };
    change();
    put('.env.untracked', SECRET);
    for (const staged of [false, true]) {
      if (staged) git('add', '.');
      const files = async (input: object): Promise<string[]> => [...assertHidden(await tool('git_diff', { ...input, staged })).matchAll(/^\+\+\+ b\/(.*)$/gm)].map((match) => match[1] ?? '');
      assert.deepEqual(await files({}), ['a.txt', 'build/log', 'sub/b.txt']);
      assert.deepEqual(await files({ path: '.' }), ['a.txt', 'build/log', 'sub/b.txt']);
      assert.deepEqual(await files({ path: 'sub' }), ['sub/b.txt']);
      assert.deepEqual(await files({ path: 'build/' }), ['build/log']);
      assert.deepEqual(await files({ path: './sub/../a.txt' }), ['a.txt']);
      for (const path of ['.env', 'sub/.env.local', 'secrets', 'secrets/key', 'sub/../secrets/key', 'build/out', '.env.untracked']) {
        await assert.rejects(tool('git_diff', { path, staged }), refused, path);
      }
      await assert.rejects(tool('git_diff', { path: '../x', staged }), (error: { code?: string }) => error.code === 'POLICY_DENIED' || error.code === 'OUTSIDE_WORKSPACE');
    }
  });
});

test('git_diff names no denied path as what a visible one was renamed or copied from, nor to', async () => {
  await inRepository(async ({ git, tool }) => {
    git('mv', '.env', 'shown.txt');
    git('mv', 'a.txt', 'secrets/a.txt');
    git('mv', 'build/log', 'log');
    const all = String(await tool('git_diff', { staged: true }));
    // What the moved file holds now lies at a visible path, where read_file shows it too.
    assert.match(all, /^\+SECRET 1$/m);
    assertHidden(all.replace(/^\+SECRET 1$/m, ''));
    assert.match(all, /^--- a\/a\.txt\n\+\+\+ \/dev\/null$/m);
    assert.match(all, /^diff --git a\/log b\/log\nnew file/m);
    const one = String(await tool('git_diff', { staged: true, path: 'shown.txt' }));
    assertHidden(one.replace(/^\+SECRET 1$/m, ''));
  });
});

test('git_diff of a file that became a directory does not show what is denied in it', async () => {
  await inRepository(async ({ root, git, put, tool }) => {
    rmSync(join(root, 'a.txt'));
    put('a.txt/.env', SECRET);
    put('a.txt/fine', 'fine\n');
    git('add', '-A');
    assert.match(assertHidden(await tool('git_diff', { staged: true })), /^\+fine$/m);
    assertHidden(await tool('git_diff', { staged: true, path: 'a.txt' }));
  });
});

test('git_diff does not follow a path whose folder has become a link to a denied one', async () => {
  await inRepository(async ({ root, tool }) => {
    renameSync(join(root, 'sub'), join(root, 'was-sub'));
    symlinkSync('secrets', join(root, 'sub'));
    assertHidden(await tool('git_diff', {}));
    await assert.rejects(tool('git_diff', { path: 'sub/b.txt' }), refused);
  });
});

test('git_commit refuses a denied file by name, and by a link to it or a link of such a name', async () => {
  await inRepository(async (repository) => {
    const { root, git, put, tool } = repository;
    put('.env', `${SECRET} more\n`);
    put('a.txt', 'A\n');
    symlinkSync('.env', join(root, 'innocent'));
    symlinkSync('a.txt', join(root, '.env.link'));
    const head = git('rev-parse', 'HEAD');
    for (const path of ['.env', './sub/../.env', 'secrets', 'secrets/key', 'innocent', '.env.link']) {
      await assert.rejects(tool('git_commit', { message: 'm', files: ['a.txt', path] }), refused, path);
    }
    assert.equal(git('rev-parse', 'HEAD'), head);
    await tool('git_commit', { message: 'm', files: ['a.txt'] });
    assert.deepEqual(committed(repository), ['a.txt']);
    assert.match(git('status', '--porcelain'), /^ M \.env$/m);
  });
});

test('git_commit of a directory leaves out what is denied in it, tracked, staged and new', async () => {
  await inRepository(async (repository) => {
    const { git, put, tool } = repository;
    put('sub/b.txt', 'B\n');
    put('sub/new', 'n\n');
    put('sub/.env.local', `${SECRET} more\n`);
    put('sub/.env.new', SECRET);
    put('build/out/z', `${SECRET} more\n`);
    git('add', 'build/out/z');
    await tool('git_commit', { message: 'm', files: ['sub'] });
    assert.deepEqual(committed(repository), ['sub/b.txt', 'sub/new']);
    put('build/log', 'more\n');
    await tool('git_commit', { message: 'm', files: ['.'] });
    assert.deepEqual(committed(repository), ['build/log']);
    assert.equal(git('status', '--porcelain'), 'M  build/out/z\n M sub/.env.local\n?? sub/.env.new\n');
    await assert.rejects(tool('git_commit', { message: 'm', files: ['sub'] }), (error: { code?: string; message: string }) => error.code === 'GIT_FAILED' && Boolean(assertHidden(error.message)));
  });
});

test('git_commit of the index is refused as a whole while it holds a change of a denied path', async () => {
  await inRepository(async (repository) => {
    const { git, put, tool } = repository;
    const head = git('rev-parse', 'HEAD');
    put('a.txt', 'A\n');
    git('add', 'a.txt');
    const staged: [string, () => void, () => void][] = [
      ['changed', () => put('.env', `${SECRET} more\n`), () => git('checkout', '-q', 'HEAD', '.env')],
      ['new', () => put('secrets/new', SECRET), () => git('rm', '-q', '-f', 'secrets/new')],
      ['removed', () => git('rm', '-q', 'secrets/key'), () => git('checkout', '-q', 'HEAD', 'secrets/key')],
      ['renamed', () => git('mv', '.env', 'shown'), () => git('mv', 'shown', '.env')],
    ];
    for (const [what, make, undo] of staged) {
      make();
      git('add', '-A');
      await assert.rejects(tool('git_commit', { message: 'm' }), (error: Error) => refused(error) && Boolean(assertHidden(error.message)), what);
      assert.equal(git('rev-parse', 'HEAD'), head, what);
      undo();
    }
    await tool('git_commit', { message: 'm' });
    assert.deepEqual(committed(repository), ['a.txt']);
  });
});

test('git_commit refuses a file that became a directory with something denied in it', async () => {
  await inRepository(async ({ root, git, put, tool }) => {
    rmSync(join(root, 'a.txt'));
    put('a.txt/.env', SECRET);
    put('a.txt/fine', 'fine\n');
    const head = git('rev-parse', 'HEAD');
    await assert.rejects(tool('git_commit', { message: 'm', files: ['a.txt'] }), refused);
    assert.equal(git('rev-parse', 'HEAD'), head);
  });
});

test('a path the policy asks about is asked about by the git tools that name it', async () => {
  await inRepository(
    async ({ asks }) => {
      assert.equal(await asks('git_diff', { path: 'sub/b.txt' }), true);
      assert.equal(await asks('git_diff', { path: 'a.txt' }), false);
      assert.equal(await asks('git_diff', { path: '.env' }), false, 'a denied path is not offered');
      assert.equal(await asks('git_commit', { message: 'm', files: ['a.txt', 'sub'] }), true);
      assert.equal(await asks('git_commit', { message: 'm', files: ['a.txt'] }), false);
    },
    { deniedPaths: DENIED, pathRules: [{ pattern: 'sub', action: 'ask' }] },
  );
});

test('without a policy git shows and commits everything', async () => {
  await inRepository(async (repository) => {
    const { put, tool } = repository;
    put('.env', `${SECRET} more\n`);
    assert.match(String(await tool('git_diff', {})), /^\+SECRET more$/m);
    await tool('git_commit', { message: 'm', files: ['.'] });
    assert.deepEqual(committed(repository), ['.env']);
  }, {});
});
