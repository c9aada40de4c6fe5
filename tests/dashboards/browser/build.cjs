// NODE_PATH=FOLDER/node_modules node build.cjs app.jsx OUT.js
const { readFile } = require('node:fs/promises');
const { build } = require('esbuild');

const [entry, outfile] = process.argv.slice(2);

// scenes 7.4.2 imports a default that the schema of the same months no longer exports
const missing = {
  name: 'missing-default',
  setup(builder) {
    builder.onLoad({ filter: /schema\/dist\/esm\/raw\/composable\/table\/panelcfg\/x\/types\.gen\.mjs$/ }, async ({ path }) => ({
      contents: `${await readFile(path, 'utf8')}\nexport const defaultOptions = {};\n`, loader: 'js',
    }));
  },
};
const embedded = Object.fromEntries(['.ttf', '.svg', '.woff', '.woff2', '.png'].map((end) => [end, 'dataurl']));

build({
  entryPoints: [entry], outfile, bundle: true, format: 'iife', loader: embedded, plugins: [missing],
  define: { 'process.env.NODE_ENV': '"production"' }, nodePaths: [process.env.NODE_PATH], logLevel: 'error',
}).catch(() => process.exit(1));
