{{/* Name of everything in this release; for a release called "capt" it is "capt". */}}
{{- define "capt.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What a selector holds can never be changed: these are the Go implementation's chart's. */}}
{{- define "capt.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
control-plane: controller-manager
{{- end -}}

{{- define "capt.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "capt.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (printf "%s-operator" (include "capt.fullname" .)) -}}
{{- end -}}

{{/* The namespaces that the operator takes care of, as a JSON list; empty for all. */}}
{{- define "capt.namespaces" -}}
{{- $value := .Values.flags.namespace | default list -}}
{{- $value = kindIs "slice" $value | ternary $value (splitList "," (toString $value)) -}}
{{- compact $value | uniq | toJson -}}
{{- end -}}

{{/*
The CRDs that this release renders, as a JSON object of name to CRD. They are kept when the release
goes or stops rendering them: with a CRD go all its objects, and with those the clusters.
The kind of a CRD cannot be changed. Where captcontrolplanetemplates is still the Go
implementation's, ours is left out until that one is gone.
*/}}
{{- define "capt.crds" -}}
{{- $crds := dict -}}
{{- if .Values.crds.install -}}
{{- range $path, $_ := .Files.Glob "files/crds/*.yaml" -}}
{{- $crd := $.Files.Get $path | fromYaml -}}
{{- $stored := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" $crd.metadata.name -}}
{{- if or (not $stored) (eq $stored.spec.names.kind $crd.spec.names.kind) -}}
{{- $_ := set $crd.metadata "annotations" (dict "helm.sh/resource-policy" "keep") -}}
{{- $_ := set $crd.metadata "labels" (merge ($crd.metadata.labels | default dict) (include "capt.labels" $ | fromYaml)) -}}
{{- $_ := set $crds $crd.metadata.name $crd -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $crds | toJson -}}
{{- end -}}

{{/*
Fails before anything is written, where the upgrade would do harm or fail half-way, and says what to
do. Both are met once, on the way from the Go implementation's chart:
- Helm deletes what the release before had and this one has not, unless its resource policy says
  otherwise; that chart has its CRDs as plain objects, some of which we do not have.
- The API server refuses Recreate as long as the settings of RollingUpdate, which it filled in by
  itself, stand beside it, and a server-side apply cannot remove them.
*/}}
{{- define "capt.guard" -}}
{{- $rendered := include "capt.crds" . | fromJson -}}
{{- $lost := list -}}
{{- range $crd := (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "").items -}}
{{- $annotations := $crd.metadata.annotations | default dict -}}
{{- if and (eq (index $annotations "meta.helm.sh/release-name" | default "") $.Release.Name)
           (eq (index $annotations "meta.helm.sh/release-namespace" | default "") $.Release.Namespace)
           (ne (index $annotations "helm.sh/resource-policy" | default "") "keep")
           (not (hasKey $rendered $crd.metadata.name)) -}}
{{- $lost = append $lost $crd.metadata.name -}}
{{- end -}}
{{- end -}}
{{- $todo := list -}}
{{- if $lost -}}
{{- $todo = append $todo (printf "It would delete the CRDs %s, all their objects and what those stand for. Keep them:\n\n  kubectl annotate crd %s helm.sh/resource-policy=keep" (join ", " $lost) (join " " $lost)) -}}
{{- end -}}
{{- $deployment := printf "%s-controller-manager" (include "capt.fullname" .) -}}
{{- $stored := lookup "apps/v1" "Deployment" .Release.Namespace $deployment -}}
{{- if and $stored (ne $stored.spec.strategy.type "Recreate") -}}
{{- $todo = append $todo (printf "The API server would refuse the new update strategy of the Deployment. Set it first, which restarts nothing:\n\n  kubectl -n %s patch deployment %s --type=json -p '[{\"op\":\"replace\",\"path\":\"/spec/strategy\",\"value\":{\"type\":\"Recreate\"}}]'" .Release.Namespace $deployment) -}}
{{- end -}}
{{- if $todo -}}
{{- fail (printf "\n\nThis upgrade was stopped and nothing was changed.\n\n%s\n\nThen upgrade again.\n" (join "\n\n" $todo)) -}}
{{- end -}}
{{- end -}}
