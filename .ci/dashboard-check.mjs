// Checks the dashboard of .package/monitoring against the types that Grafana publishes.
//
//   node .ci/dashboard-check.mjs
//
// Imported JSON loses its literals, so this script writes the dashboard into a TypeScript module.
// Then the compiler also refuses unknown fields.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';

const dashboard = readFileSync('.package/monitoring/dashboard.json', 'utf8');
const fieldsOf = { timeseries: 'GraphFieldConfig', stat: 'Record<string, never>' };
const optionsOf = { timeseries: 'timeseries.Options', stat: 'stat.Options' };

// The published types have enumerations where the JSON has their values.
let module = `
import type { Dashboard, GraphFieldConfig, Panel, RowPanel } from '@grafana/schema';
import type * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
type Plain<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
export const dashboard: Plain<Dashboard> = ${dashboard};
`;
for (const panel of JSON.parse(dashboard).panels) {
  const { id, type, options, fieldConfig } = panel;
  if (type === 'row') {
    module += `export const panel${id}: Plain<RowPanel> = ${JSON.stringify(panel)};\n`;
    continue;
  }
  if (!optionsOf[type]) throw new Error(`no types are known for panels of type ${type}`);
  module += `export const panel${id}: Plain<Panel> = ${JSON.stringify(panel)};\n`;
  module += `export const options${id}: Plain<Partial<${optionsOf[type]}>> = ${JSON.stringify(options)};\n`;
  module += `export const fields${id}: Plain<${fieldsOf[type]}> = ${JSON.stringify(fieldConfig.defaults.custom ?? {})};\n`;
}
mkdirSync('.ci/node_modules/.grafana', { recursive: true });
writeFileSync('.ci/node_modules/.grafana/dashboard.ts', module);
execFileSync('node', ['.ci/node_modules/typescript/bin/tsc', '--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022',
  '--module', 'nodenext', '.ci/node_modules/.grafana/dashboard.ts'], { stdio: 'inherit' });
console.log('ok: the dashboard has the types of @grafana/schema');
