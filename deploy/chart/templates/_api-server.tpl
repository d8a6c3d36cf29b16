{{/*
Address and port of the API server: that of the values, else that of a kubeadm cluster. "kubeadm-config" has the address of a
highly available control plane, "cluster-info" that of every other.
*/}}
{{- define "turnout.apiServer" -}}
{{- $found := "" -}}
{{- with lookup "v1" "ConfigMap" "kube-system" "kubeadm-config" -}}
{{- $found = (get .data "ClusterConfiguration" | default "" | fromYaml).controlPlaneEndpoint | default "" -}}
{{- end -}}
{{- if not $found -}}
{{- with lookup "v1" "ConfigMap" "kube-public" "cluster-info" -}}
{{- range (get .data "kubeconfig" | default "" | fromYaml).clusters -}}
{{- $found = .cluster.server | trimPrefix "https://" | trimSuffix "/" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.apiServer.host -}}
{{- printf "%s:%v" .Values.apiServer.host .Values.apiServer.port -}}
{{- else if regexMatch ":[0-9]+$" $found -}}
{{- $found -}}
{{- else if $found -}}
{{- printf "%s:%v" $found .Values.apiServer.port -}}
{{- else -}}
{{- fail "cannot find the address of the API server: this is not a cluster made by kubeadm; pass the host of `kubectl config view --minify -o 'jsonpath={.clusters[0].cluster.server}'`, as reached from the nodes: --set apiServer.host=HOST --set apiServer.port=PORT" -}}
{{- end -}}
{{- end -}}
