{{- /* The settings that a Secret holds, each with its key in `secrets.keys`. */ -}}
{{- define "gatewright.secretSettings" -}}
DATABASE_URL: databaseUrl
DIRECT_DATABASE_URL: directDatabaseUrl
MIGRATION_DATABASE_URL: migrationDatabaseUrl
ADMIN_DATABASE_URL: adminDatabaseUrl
REDIS_URL: redisUrl
SECRET_KEY: secretKey
SECRET_KEY_PREVIOUS: secretKeyPrevious
BOOTSTRAP_TOKEN: bootstrapToken
{{- end -}}

{{- /* Those that a program takes, and that the values have: { SETTING: key of the Secret }. [root, settings] */ -}}
{{- define "gatewright.secretFiles" -}}
{{- $values := (index . 0).Values.secrets.keys -}}
{{- $names := include "gatewright.secretSettings" . | fromYaml -}}
{{- $found := dict -}}
{{- range index . 1 -}}
{{- $key := index $values (index $names .) -}}
{{- if $key -}}
{{- $_ := set $found . $key -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{- /* The folder of these files. */ -}}
{{- define "gatewright.secretFolder" -}}/run/secrets/gatewright{{- end -}}

{{- /* Environment: the files, then the settings of the chart, then those of the values. [root, secret settings, own settings] */ -}}
{{- define "gatewright.env" -}}
{{- $root := index . 0 -}}
{{- range $setting, $key := include "gatewright.secretFiles" . | fromYaml }}
- name: {{ $setting }}_FILE
  value: {{ include "gatewright.secretFolder" $root }}/{{ $key }}
{{- end }}
{{- with $root.Values.secrets.keys.authorities }}
- name: NODE_EXTRA_CA_CERTS
  value: {{ include "gatewright.secretFolder" $root }}/{{ . }}
{{- end }}
{{- range $setting, $value := index . 2 }}
- name: {{ $setting }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- /* The text of a setting. Helm reads numbers as floats, which it writes as 1e+06 from a million on. */ -}}
{{- define "gatewright.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}{{ int64 . }}{{- else -}}{{ . }}{{- end -}}
{{- end -}}

{{- define "gatewright.sharedEnv" -}}
{{- range $setting, $value := .Values.settings }}
- name: {{ $setting }}
  value: {{ include "gatewright.text" $value | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Only what the program takes is in its pod. [root, secret settings] */ -}}
{{- define "gatewright.volumes" -}}
- name: secrets
  secret:
    secretName: {{ (index . 0).Values.secrets.name }}
    defaultMode: 0440
    items:
      {{- range $setting, $key := include "gatewright.secretFiles" . | fromYaml }}
      - { key: {{ $key }}, path: {{ $key }} }
      {{- end }}
      {{- with (index . 0).Values.secrets.keys.authorities }}
      - { key: {{ . }}, path: {{ . }} }
      {{- end }}
- name: tmp
  emptyDir: { sizeLimit: 64Mi }
- name: data
  emptyDir: { sizeLimit: 16Mi }
{{- end -}}

{{- define "gatewright.volumeMounts" -}}
- { name: secrets, mountPath: {{ include "gatewright.secretFolder" . }}, readOnly: true }
- { name: tmp, mountPath: /tmp }
- { name: data, mountPath: /data }
{{- end -}}

{{- /* The image's user `node`. */ -}}
{{- define "gatewright.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "gatewright.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- /* Where the pods of a component run. [root, component, its values] */ -}}
{{- define "gatewright.placement" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- with index . 2 }}
{{- with .nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
{{- if $root.Values.topologySpread.enabled }}
topologySpreadConstraints:
  {{- range $root.Values.topologySpread.keys }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{ include "gatewright.selector" (list $root $component) | nindent 8 }}
  {{- end }}
{{- end }}
{{- end -}}
