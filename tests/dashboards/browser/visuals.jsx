// Panel plugins: Grafana's own components where npm has them, a note where it hasn't.
import React from 'react';
import * as data from '@grafana/data';
import * as ui from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { sceneUtils } from '@grafana/scenes';
import { plugins, theme } from './shims';

const CUSTOM = {
  drawStyle: 'line', lineWidth: 1, lineInterpolation: 'linear', lineStyle: undefined, fillOpacity: 0,
  fillBelowTo: undefined, gradientMode: 'none', spanNulls: false, insertNulls: false, showPoints: 'auto', pointSize: 5,
  stacking: { mode: 'none', group: 'A' }, scaleDistribution: { type: 'linear' }, axisPlacement: 'auto', axisLabel: '',
  axisSoftMin: undefined, axisSoftMax: undefined, thresholdsStyle: { mode: 'off' },
  hideFrom: { legend: false, tooltip: false, viz: false }, cellOptions: undefined, align: undefined, width: undefined,
  filterable: false, inspect: false,
};

const Nothing = ({ panel }) => (
  <div style={{ display: 'flex', height: '100%', alignItems: 'center', justifyContent: 'center', color: '#9fa7b3' }}>
    {panel.fieldConfig.defaults.noValue || 'No data'}
  </div>
);

function withDefaults(frames) {
  return frames.map((frame) => ({
    ...frame,
    fields: frame.fields.map((field) =>
      field.type === data.FieldType.number
        ? { ...field, config: { ...field.config, custom: { ...CUSTOM, ...field.config.custom } } }
        : field),
  }));
}

function Lines(panel) {
  const frames = React.useMemo(() => withDefaults(panel.data.series), [panel.data.series]);
  if (!frames.length) return <Nothing panel={panel} />;
  return (
    <ui.TimeSeries frames={frames} structureRev={panel.data.structureRev ?? 1} timeRange={panel.timeRange}
      timeZone="utc" width={panel.width} height={panel.height} legend={panel.options.legend} options={panel.options}>
      {() => null}
    </ui.TimeSeries>
  );
}

function values(panel) {
  return data.getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: panel.options.reduceOptions, theme,
    replaceVariables: panel.replaceVariables, data: panel.data.series, timeZone: 'utc', sparkline: false,
  });
}

const repeated = (draw, orientation) => (panel) => {
  if (!panel.data.series.length) return <Nothing panel={panel} />;
  return (
    <ui.VizRepeater getValues={() => values(panel)} getAlignmentFactors={data.getDisplayValueAlignmentFactors}
      renderValue={(value) => draw(panel, value)} width={panel.width} height={panel.height} source={panel.data}
      itemSpacing={3} renderCounter={panel.renderCounter} autoGrid={orientation === 'auto'}
      orientation={orientation} minVizHeight={16} maxVizHeight={300} />
  );
};

const Stat = repeated((panel, { value, alignmentFactors, width, height, count }) => (
  <ui.BigValue value={value.display} count={count} colorMode={panel.options.colorMode} graphMode="none"
    justifyMode="auto" textMode={panel.options.textMode} alignmentFactors={alignmentFactors} width={width}
    height={height} theme={theme} wideLayout={panel.options.wideLayout} text={panel.options.text} />
), 'auto');

const Bars = repeated((panel, { value, alignmentFactors, width, height, orientation }) => (
  <ui.BarGauge value={value.display} field={value.field} width={width} height={height} orientation={orientation}
    display={value.view?.getFieldDisplayProcessor(value.colIndex)} theme={theme} itemSpacing={8} lcdCellWidth={12}
    displayMode={panel.options.displayMode} valueDisplayMode={panel.options.valueMode}
    alignmentFactors={alignmentFactors} namePlacement={panel.options.namePlacement} />
), 'horizontal');

function Table(panel) {
  const [frame] = panel.data.series;
  if (!frame || !frame.length) return <Nothing panel={panel} />;
  const named = { ...frame, fields: frame.fields.map((field) => ({ ...field, name: data.getFieldDisplayName(field, frame) })) };
  return (
    <TableNG data={named} width={panel.width} height={panel.height} cellHeight="sm" showTypeIcons={false}
      getActions={() => []} structureRev={1} timeRange={panel.timeRange} />
  );
}

const Elsewhere = (panel) => (
  <div style={{ padding: 12, color: '#9fa7b3' }}>
    {`${panel.data.series.length} lanes; this kind of panel is drawn by Grafana only`}
  </div>
);

const KINDS = { timeseries: Lines, stat: Stat, bargauge: Bars, table: Table, 'state-timeline': Elsewhere };

export function register() {
  for (const [kind, Component] of Object.entries(KINDS)) {
    const id = `drawn-${kind}`; // Grafana's own names are taken
    const plugin = new data.PanelPlugin(Component);
    plugin.useFieldConfig({
      useCustomConfig: (builder) => {
        for (const [path, defaultValue] of Object.entries(CUSTOM)) {
          builder.addCustomEditor({
            id: path, path, name: path, defaultValue, process: data.identityOverrideProcessor,
            editor: () => null, override: () => null, shouldApply: () => true,
          });
        }
      },
    });
    plugin.meta = {
      id, name: id, type: 'panel', module: '', baseUrl: '', sort: 1,
      info: { logos: {}, version: '1', screenshots: [], links: [], updated: '', author: { name: '' }, description: '' },
    };
    plugins[id] = plugin;
    sceneUtils.registerRuntimePanelPlugin({ pluginId: id, plugin });
  }
}
