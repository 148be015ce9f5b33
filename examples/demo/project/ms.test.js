const assert = require('node:assert/strict');
const { test } = require('node:test');
const ms = require('./index.js');

test('reads minutes', () => assert.equal(ms('2m'), 120_000));
test('reads days', () => assert.equal(ms('2d'), 172_800_000));
test('writes days', () => assert.equal(ms(172_800_000), '2d'));
