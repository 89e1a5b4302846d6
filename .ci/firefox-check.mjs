// Uses the dashboard of a running server in Firefox, by visible labels and names. No page may
// report an error, violate its own content security policy, or be wider than a phone.
//
//   node firefox-check.mjs BASE_URL API_KEY PASSWORD
//
// The server must have the offline model and no rate limit (JOURNEYMAN_MODEL,
// JOURNEYMAN_RATE_LIMIT). PASSWORD is that of the owner (JOURNEYMAN_ADMIN_PASSWORD).
// FIREFOX names the program; the default is firefox-esr.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import test, { after, before } from 'node:test';
import puppeteer from 'puppeteer-core';

const [base, key, password] = process.argv.slice(2);
assert.ok(base && key && password, 'usage: node firefox-check.mjs BASE_URL API_KEY PASSWORD');
const patience = 30_000; // the longest time that a step waits for the browser
const wide = { width: 1280, height: 900 };
const phone = { width: 360, height: 780 };

let browser, page;
const problems = [];

before(async () => {
  const program = execFileSync('which', [process.env.FIREFOX || 'firefox-esr'], { encoding: 'utf8' }).trim();
  browser = await puppeteer.launch({ browser: 'firefox', executablePath: program, headless: true, args: ['--no-remote'], timeout: 2 * patience });
  page = await browser.newPage();
  page.setDefaultTimeout(patience);
  await page.setViewport(wide);
  // Violations of the content security policy are also errors of a page.
  page.on('pageerror', (error) => problems.push(`${page.url()}: ${error}`));
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(`${page.url()}: console: ${message.text()}`);
  });
  page.on('dialog', (dialog) => {
    problems.push(`${page.url()}: ${dialog.type()}: ${dialog.message()}`);
    dialog.accept();
  });
});

after(() => browser?.close());

// step is a test that continues from the state of the last one: after a failure, the others would
// only wait.
let going = true;
function step(name, run) {
  test(name, async (t) => {
    if (!going) return t.skip('a step before has failed');
    going = false;
    await run();
    assert.deepEqual(problems.splice(0), []);
    going = true;
  });
}

// The selectors of the elements of a role. A script finds them, because Firefox and Chromium do not
// agree on the role of a password field.
const roles = {
  button: 'button, summary', link: 'a[href]', heading: 'h1, h2, h3', dialog: '[role=dialog]', combobox: 'select, [role=combobox]',
  checkbox: 'input[type=checkbox]', radio: 'input[type=radio]', textbox: 'textarea, input:not([type=checkbox], [type=radio], [type=hidden])',
};

// named returns the visible element with a role and a name: its label or its text.
function named(role, name) {
  const find = (css, name) => {
    const words = (node) => node.innerText.replace(/\s+/g, ' ').trim();
    const labels = (node) => [...(node.labels || [])].map(words);
    const titled = (node) => words(document.getElementById(node.getAttribute('aria-labelledby')) || node);
    return [...document.querySelectorAll(css)].find((node) => node.checkVisibility({ visibilityProperty: true })
      && [node.getAttribute('aria-label'), titled(node), ...labels(node)].some((text) => text === name || text && text.startsWith(name + ' ')));
  };
  return until(`the ${role} ${name}`, find, roles[role], name);
}

async function click(role, name) {
  const element = await named(role, name);
  await element.evaluate((node) => node.scrollIntoView({ block: 'center', behavior: 'instant' }));
  await element.click();
}

// clickTo clicks an element that leads to another page, and waits for that page.
async function clickTo(role, name) {
  await Promise.all([page.waitForNavigation({ waitUntil: 'load' }), click(role, name)]);
}

// fill replaces the text of the field with a label.
async function fill(name, text) {
  const field = await named('textbox', name);
  await field.evaluate((node) => { node.focus(); node.select(); });
  if (text.includes('\n')) await field.evaluate((node, value) => document.execCommand('insertText', false, value), text); // the Enter key would send
  else await page.keyboard.type(text);
}

const open = (path) => page.goto(new URL(path, base).href, { waitUntil: 'load' });

// until waits until a function is true on the page, and returns a handle of its result.
async function until(what, test, ...values) {
  try {
    return await page.waitForFunction(test, { polling: 50 }, ...values);
  } catch (cause) {
    const shown = await page.evaluate(() => document.querySelector('main').innerText.slice(0, 4000));
    throw new Error(`waited in vain for ${what} at ${page.url()}, where there is:\n${shown}`, { cause });
  }
}

const sees = (text) => until(JSON.stringify(text), (wanted) => document.body?.innerText.includes(wanted), text);

// api returns the answer of the HTTP API.
async function api(method, path, body) {
  const response = await fetch(new URL(path, base), { method, signal: AbortSignal.timeout(patience),
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}

const script = (...lines) => ['```offline', ...lines, '```'].join('\n');
const worker = `Harbour clerk ${Date.now()}`;
let task, workerPath; // the state after the tests before

step('a wrong password is refused, and the right one signs in', async () => {
  await open('/tasks');
  await fill('Email address', 'owner@localhost');
  await fill('Password', 'not the password');
  await clickTo('button', 'Sign in');
  assert.equal(new URL(page.url()).pathname, '/sign-in');
  await page.waitForSelector('main [role=alert]', { visible: true });
  await fill('Email address', 'owner@localhost');
  await fill('Password', password);
  await clickTo('button', 'Sign in');
  assert.equal(new URL(page.url()).pathname, '/tasks'); // the requested page
});

step('a worker is written by hand', async () => {
  await open('/workers/new');
  await click('heading', 'Write it by hand');
  await fill('Title', worker);
  await fill('Instructions', 'Keep the list of the berths.');
  await click('checkbox', 'publish_file');
  await clickTo('button', 'Create worker');
  await sees('Keep the list of the berths.');
  workerPath = new URL(page.url()).pathname;
});

step('an answer streams, and a call waits for an approval on the page', async () => {
  await open('/');
  const choice = await named('combobox', 'Worker');
  await choice.select(workerPath.split('/').at(-1));
  const rows = ['say | Berth | Ship |', 'say |---|---|', 'say | North 1 | Aurora |'];
  await fill('What should be done?', 'List the berths.\n\n' + script('think Two berths are known.',
    'tool write_file {"path": "berths.csv", "content": "berth,ship\\nNorth 1,Aurora\\nNorth 2,Borealis\\n"}',
    'say These are the berths:', 'say', ...rows, 'wait 700ms', 'say | North 2 | Borealis |', 'say', 'wait 300ms',
    'tool publish_file {"path": "berths.csv"}', 'say I read them with this:', 'say', 'say ~~~python', 'say ships = 2', 'say ~~~', 'wait 300ms', 'say', 'say **Both are taken.**'));
  await clickTo('button', 'Run');
  task = new URL(page.url()).pathname;
  await until('the table, while it grows', () => document.querySelector('table td')?.innerText.includes('North 1'));
  await sees('North 2');
  await named('button', 'Deny');
  await click('button', 'Approve');
  await sees('Both are taken.');
  await until('the code', () => [...document.querySelectorAll('pre code')].some((code) => code.innerText.includes('ships = 2')));
  await named('button', 'Run again');
  await sees('berths.csv');
  assert.equal(await page.evaluate(() => document.querySelectorAll('main table').length), 1);
});

step('a follow-up runs on the same page', async () => {
  await open(task);
  await fill('Follow-up', script('say And nobody waits.'));
  await page.keyboard.down('Control');
  await page.keyboard.press('Enter');
  await page.keyboard.up('Control');
  await sees('And nobody waits.');
  await until('the end', () => document.querySelectorAll('.acts').length === 2);
});

step('a published file is previewed', async () => {
  await open(`${workerPath}/files`);
  await clickTo('link', 'berths.csv');
  await until('the table of the file', () => [...document.querySelectorAll('main td')].some((cell) => cell.innerText === 'Borealis'));
});

step('the list of tasks follows what programs do', async () => {
  await open('/tasks');
  await page.evaluate(() => { window.same = true; });
  const title = `By a program ${Date.now()}`;
  await api('POST', '/api/tasks', { workerId: workerPath.split('/').at(-1), input: `${title}\n\n${script('say Hello.')}` });
  await sees(title);
  await until('the end of the task', (wanted) => [...document.querySelectorAll('tr')].some((row) => row.innerText.includes(wanted) && row.querySelector('[data-state=completed]')), title);
  assert.equal(await page.evaluate(() => window.same), true); // the page was not loaded again
});

step('the palette opens by Ctrl+K and finds, and ? lists the shortcuts', async () => {
  await open('/tasks');
  await page.keyboard.down('Control');
  await page.keyboard.press('k');
  await page.keyboard.up('Control');
  await named('combobox', 'Search or run a command');
  await page.keyboard.type('harbour');
  await until('a result', (wanted) => document.querySelector('[role=option][aria-selected=true]')?.innerText.startsWith(wanted), worker);
  await Promise.all([page.waitForNavigation({ waitUntil: 'load' }), page.keyboard.press('Enter')]);
  assert.equal(new URL(page.url()).pathname, workerPath);
  await page.keyboard.type('?');
  await named('dialog', 'Keyboard shortcuts');
  await page.keyboard.press('Escape');
  await until('no list', () => !document.querySelector('[popover]:popover-open'));
});

step('the next runs of a schedule show while its rule is typed', async () => {
  await open(`${workerPath}/schedules`);
  await fill('Instruction', 'Look at the berths.');
  await fill('Cron expression', '0 9 * * 1-5');
  await until('the next runs', () => document.querySelector('[role=status][data-says]')?.innerText.includes('09:00'));
  await fill('Cron expression', '0 99 * * *');
  await until('the mistake', () => document.querySelector('[role=status][data-says].bad'));
});

step('the theme is chosen and stays', async () => {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  for (const theme of ['Light', 'Dark']) {
    await open('/account');
    await click('radio', theme);
    await clickTo('button', 'Save theme and language');
    const [red] = (await ground()).match(/[\d.]+/g).map(Number);
    assert.equal(red > 127, theme === 'Light', `${theme}: ${await ground()}`);
  }
  await open('/workers');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
});

step('no page of the navigation is wider than a phone', async () => {
  const paths = new Set(['/', '/search?q=berths', '/workers/new', task]);
  for (const path of ['/workers', '/settings', workerPath, '/account']) {
    await open(path);
    for (const found of await page.$$eval('nav a[href], aside a[href]', (links) => links.map((link) => link.getAttribute('href').split('#')[0]))) {
      if (found.startsWith('/') && !found.endsWith('.zip') && !found.endsWith('.csv')) paths.add(found);
    }
  }
  assert.ok(paths.size > 15, `only ${[...paths]}`);
  await page.setViewport(phone);
  for (const path of paths) {
    await open(path);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(over <= 0, `${path} is ${over} pixels wider than ${phone.width}`);
    assert.ok(await page.$('main h1, header h1'), `${path} has no heading`);
  }
  await page.setViewport(wide);
});
