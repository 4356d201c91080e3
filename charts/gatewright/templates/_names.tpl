{{- define "gatewright.fullname" -}}
{{- .Values.fullnameOverride | default (ternary .Release.Name (printf "%s-gatewright" .Release.Name) (contains "gatewright" .Release.Name)) | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "gatewright.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "gatewright.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "gatewright.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ printf "%s@%s" $image.repository $image.digest }}
{{- else -}}
{{ printf "%s:%s" $image.repository ($image.tag | default .Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{- /* What selects the pods of one component: [root, component]. It never changes. */ -}}
{{- define "gatewright.selector" -}}
app.kubernetes.io/name: gatewright
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "gatewright.labels" -}}
{{ include "gatewright.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end -}}
