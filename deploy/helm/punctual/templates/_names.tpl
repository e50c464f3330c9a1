{{- define "punctual.labels" -}}
{app.kubernetes.io/name: punctual, app.kubernetes.io/instance: {{ .Release.Name | quote }}}
{{- end -}}
