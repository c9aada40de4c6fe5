// node shot.cjs CHROMIUM OUT.png WIDTH HEIGHT URL: draws a page, and fails where a query or the page itself does.
const { chromium } = require('playwright-core');

const [executablePath, path, width, height, url] = process.argv.slice(2);
const QUIET = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync'];

(async () => {
  const browser = await chromium.launch({ executablePath, args: QUIET });
  const page = await browser.newPage({ viewport: { width: Number(width), height: Number(height) } });
  const errors = [];
  page.on('console', (message) => {
    if (/^(QUERY|MAIN)/.test(message.text())) errors.push(message.text());
    else if (process.env.VERBOSE) console.log(message.type(), message.text().slice(0, 300));
  });
  page.on('pageerror', (error) => errors.push(String(error.stack).slice(0, 900)));
  await page.goto(url);
  await page.waitForLoadState('networkidle');
  await page.waitForTimeout(1500); // drawing goes on after the last answer
  await page.screenshot({ path });
  await browser.close();
  if (errors.length) {
    console.error(errors.join('\n'));
    process.exit(1);
  }
})();
